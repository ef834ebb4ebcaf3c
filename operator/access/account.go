package access

import (
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/skein-threads/skein/events"
)

// Names of the accounts that belong to no tenant, as the server shows them.
// Tenants' accounts are named "tenant " and the tenant, so that none can be
// taken for another.
const (
	systemAccount  = "SYS"
	skeinAccount   = "SKEIN"
	workerAccount  = "WORKERS"
	gatewayAccount = "GATEWAYS"
	auditAccount   = "AUDIT"
)

// ownAccounts lists the accounts that belong to no tenant.
func ownAccounts() []string {
	return []string{systemAccount, skeinAccount, workerAccount, gatewayAccount, auditAccount}
}

func tenantAccount(tenant string) string { return "tenant " + tenant }

// What a tenant may have of the server. The server counts an account's connections, and holds
// each of them to the account's subscriptions.
const (
	tenantConnections   = 256
	tenantSubscriptions = 10_000 // of each connection
)

// answerWithin is how long the server remembers where an answer belongs. It
// remembers that of every request; the longest takes half of this.
const answerWithin = time.Minute

// accountOf returns the account that a user belongs to.
func accountOf(u User) string {
	switch u.Roles[0] {
	case Worker:
		return workerAccount
	case Gateway:
		return gatewayAccount
	case Auditor:
		return auditAccount
	case Administrator:
		return skeinAccount
	default:
		return tenantAccount(u.Tenant)
	}
}

// sessionKeys returns the keys of the tickets and sessions of gateways.
func sessionKeys(n events.Names) string { return n.Session(gatewayRealm, "*", "*", "*") }

// claims returns the claims of an account, by its name. keys are the public keys of the
// others.
func claims(n events.Names, name, tenant string, keys map[string]string) *jwt.AccountClaims {
	c := jwt.NewAccountClaims(keys[name])
	c.Name = name
	c.Limits.DisallowBearer = true
	service := func(subject string) *jwt.Export {
		return &jwt.Export{Name: subject, Subject: jwt.Subject(subject), Type: jwt.Service, ResponseType: jwt.ResponseTypeStream}
	}
	stream := func(subject string) *jwt.Export {
		return &jwt.Export{Name: subject, Subject: jwt.Subject(subject), Type: jwt.Stream}
	}
	// Skein asks the server whether a process serves a reactor or a tool, without sending it anything.
	traced := func(subject string) *jwt.Export {
		e := service(subject)
		e.AllowTrace = true
		return e
	}
	from := func(account, subject string, kind jwt.ExportType) *jwt.Import {
		return &jwt.Import{Name: subject, Subject: jwt.Subject(subject), Account: keys[account], Type: kind}
	}
	reactors, tools, effects := n.Prefix+".reactor.>", n.Prefix+".tool.>", n.Prefix+".effect.>"
	switch name {
	case systemAccount:
	case skeinAccount:
		c.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
		// Any account of this operator may import these, and there are no others
		// than those which are made here: each imports what is its own.
		for _, subject := range []string{n.Command("*", ">"), n.Query("*", ">"), n.Submit("*", ">"), n.File("*", ">"), n.Upload("*", ">")} {
			e := service(subject)
			e.ResponseType = jwt.ResponseTypeSingleton
			e.ResponseThreshold = answerWithin
			c.Exports.Add(e)
		}
		for _, subject := range auditSubjects() {
			c.Exports.Add(service("$JS.API." + subject))
		}
		c.Exports.Add(service(sessionKeys(n))) // that they are read by is among the audit's
		for _, subject := range []string{n.GatewayKeys(""), n.GatewayKeys("*"), n.Emit("*", "*", "*"), n.OperationReport(), n.OperationList()} {
			c.Exports.Add(service(subject))
		}
		c.Exports.Add(stream(n.Prefix+".timeline.*.>"), stream(allLive(n, "*")), stream(n.Cancel("*")), stream(events.AgentsHeartbeat("*", "*", "*")))
		for _, subject := range agentsAsked("*") {
			c.Exports.Add(service(subject))
		}
		for _, verb := range events.AgentsVerbs() {
			c.Exports.Add(service(events.AgentsFind(verb, "*")), service(events.AgentsFind(verb, "*")+".*"))
		}
		c.Imports.Add(from(workerAccount, reactors, jwt.Service), from(workerAccount, tools, jwt.Service), from(workerAccount, effects, jwt.Service))
	case workerAccount:
		c.Exports.Add(traced(reactors), traced(tools), service(effects))
		c.Imports.Add(from(skeinAccount, n.Cancel("*"), jwt.Stream))
	case gatewayAccount:
		for _, subject := range []string{n.Command("*", ">"), n.Query("*", ">"), n.Submit("*", ">"), n.File("*", ">"), n.Upload("*", ">"), n.GatewayKeys(""), n.GatewayKeys("*"), n.Emit("*", "*", "*"), sessionKeys(n), n.SessionGet(sessionKeys(n))} {
			c.Imports.Add(from(skeinAccount, subject, jwt.Service))
		}
		c.Imports.Add(from(skeinAccount, n.Prefix+".timeline.*.>", jwt.Stream), from(skeinAccount, allLive(n, "*"), jwt.Stream))
		// Live events that gateways emit go to Skein, which emits them where everyone's
		// subscriptions are.
		c.AddMapping(jwt.Subject(n.AllLive("*", "*")), jwt.WeightedMapping{Subject: jwt.Subject(n.Emit("$1", "$2", "$3")), Weight: 100})
	case auditAccount:
		for _, subject := range auditSubjects() {
			i := from(skeinAccount, "$JS.API."+subject, jwt.Service)
			i.LocalSubject = jwt.RenamingSubject(AuditAPI + "." + subject)
			c.Imports.Add(i)
		}
		c.Imports.Add(from(skeinAccount, n.OperationReport(), jwt.Service), from(skeinAccount, n.OperationList(), jwt.Service))
	default:
		c.Limits.Conn, c.Limits.Subs = tenantConnections, tenantSubscriptions
		for _, subject := range []string{n.Command(tenant, ">"), n.Query(tenant, ">"), n.Submit(tenant, ">"), n.File(tenant, ">"), n.Upload(tenant, ">")} {
			c.Imports.Add(from(skeinAccount, subject, jwt.Service))
		}
		c.Imports.Add(from(skeinAccount, n.Prefix+".timeline."+tenant+".>", jwt.Stream), from(skeinAccount, allLive(n, tenant), jwt.Stream),
			from(skeinAccount, events.AgentsHeartbeat("*", tenant, "*"), jwt.Stream))
		for _, subject := range agentsAsked(tenant) {
			c.Imports.Add(from(skeinAccount, subject, jwt.Service))
		}
		for _, verb := range events.AgentsVerbs() { // where clients look that know nothing of Skein
			for _, id := range []string{"", ".*"} {
				i := from(skeinAccount, events.AgentsFind(verb, tenant)+id, jwt.Service)
				i.LocalSubject = jwt.RenamingSubject(events.AgentsFindLocal(verb) + id)
				c.Imports.Add(i)
			}
		}
	}
	return c
}

// sign signs the claims of an account.
func sign(operator nkeys.KeyPair, c *jwt.AccountClaims) (string, error) {
	results := jwt.CreateValidationResults()
	c.Validate(results)
	if errs := results.Errors(); len(errs) > 0 {
		return "", fmt.Errorf("access: the account %s cannot be created: %w", c.Name, errs[0])
	}
	return c.Encode(operator)
}

// issue makes a user's token and the file of credentials that holds it with the
// user's secret key.
func issue(n events.Names, u *User, account nkeys.KeyPair, now time.Time) ([]byte, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	defer pair.Wipe()
	seed, err := pair.Seed()
	if err != nil {
		return nil, err
	}
	if u.Key, err = pair.PublicKey(); err != nil {
		return nil, err
	}
	c := jwt.NewUserClaims(u.Key)
	c.Name = u.Name
	c.AllowedConnectionTypes.Add(jwt.ConnectionTypeStandard, jwt.ConnectionTypeWebsocket, jwt.ConnectionTypeInProcess)
	if u.Expires != nil {
		c.Expires = u.Expires.Unix()
	}
	if len(u.Roles) > 0 { // the system's own user has none, and may do all in its account
		if c.Permissions, err = permissions(n, *u); err != nil {
			return nil, err
		}
	}
	u.Issued = now
	token, err := c.Encode(account)
	if err != nil {
		return nil, err
	}
	return jwt.FormatUserConfig(token, seed)
}
