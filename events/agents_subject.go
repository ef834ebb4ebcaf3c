package events

// Subjects of the Synadia Agent Protocol for NATS. They begin with agents, whatever the prefix of
// Skein's own is.

// AgentsRoot begins the subjects.
const AgentsRoot = "agents"

// AgentsSession is the session of the one address that an agent announces.
const AgentsSession = "main"

// AgentsPrompt returns the subject on which an agent of a tenant is asked.
func AgentsPrompt(agent, tenant, session string) string {
	return AgentsRoot + ".prompt." + agent + "." + tenant + "." + session
}

// AgentsStatus returns the subject on which an agent of a tenant answers with its heartbeat.
func AgentsStatus(agent, tenant, session string) string {
	return AgentsRoot + ".status." + agent + "." + tenant + "." + session
}

// AgentsHeartbeat returns the subject on which an agent of a tenant publishes heartbeats.
func AgentsHeartbeat(agent, tenant, session string) string {
	return AgentsRoot + ".hb." + agent + "." + tenant + "." + session
}

// AgentsReply returns the subject on which a question is answered that a process has asked.
func AgentsReply(process, tenant, question string) string {
	return AgentsRoot + ".reply." + process + "." + tenant + "." + question
}

// AgentsFind returns the subject on which a tenant's agents are found, since all tenants together
// are found on $SRV: verb is PING, INFO or STATS. The account of the tenant has it as
// [AgentsFindLocal].
func AgentsFind(verb, tenant string) string { return AgentsRoot + ".find." + verb + "." + tenant }

// AgentsFindLocal returns the subject on which agents are found by everyone who does not know Skein.
func AgentsFindLocal(verb string) string { return "$SRV." + verb + ".agents" }

// AgentsVerbs are the verbs with which services are found.
func AgentsVerbs() []string { return []string{"PING", "INFO", "STATS"} }
