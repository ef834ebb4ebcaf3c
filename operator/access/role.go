package access

import (
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
)

// Role says what a user may do. Docs: docs/access.md.
type Role string

// The roles. Publisher and Subscriber belong to a tenant, and may be one user's
// both; the others stand alone and belong to none.
const (
	Publisher     Role = "publisher"     // sends the tenant's commands and queries, transfers its files, and emits live events
	Subscriber    Role = "subscriber"    // reads the tenant's timeline and live events, and asks its queries
	Worker        Role = "worker"        // is reactors, tools and effects, for every tenant that uses them
	Gateway       Role = "gateway"       // serves tenants over HTTP: does for each what its publishers and subscribers may
	Auditor       Role = "auditor"       // reads every tenant's log and read models, and writes nothing but what its audits found
	Administrator Role = "administrator" // may do everything that Skein may
)

// Roles lists the roles.
func Roles() []Role { return []Role{Publisher, Subscriber, Worker, Gateway, Auditor, Administrator} }

// ofTenant reports whether the role belongs to a tenant.
func (r Role) ofTenant() bool { return r == Publisher || r == Subscriber }

// responseTime is how long after a request a worker may still answer it.
const responseTime = time.Hour

// gatewayRealm is the realm of gateways in the bucket of tickets and sessions, as package edge has it.
const gatewayRealm = "gateway"

// AuditAPI is the prefix of JetStream's API as auditors see it: that of a domain
// with the name skein. Their own account answers on the usual one.
const AuditAPI = "$JS.skein.API"

// auditSubjects are what auditors may ask of JetStream, below its prefix. Each
// answers from a stream, and changes nothing.
func auditSubjects() []string { return []string{"STREAM.INFO.>", "STREAM.MSG.GET.>", "DIRECT.GET.>"} }

// InboxOf returns the prefix of the inboxes that a user may subscribe to.
func InboxOf(name string) string { return "_INBOX." + name }

// allLive returns the subjects of the live events of a tenant.
func allLive(n events.Names, tenant string) string { return n.Prefix + ".live." + tenant + ".>" }

// agentsAsked returns the subjects on which the agents of a tenant are asked over the Synadia Agent
// Protocol, and their questions answered.
func agentsAsked(tenant string) []string {
	return []string{events.AgentsPrompt("*", tenant, "*"), events.AgentsStatus("*", tenant, "*"), events.AgentsReply("*", tenant, "*")}
}

// agentsSubjects returns the subjects of the agents protocol that a user of a tenant may publish on
// and subscribe to.
func agentsSubjects(r Role, tenant string) (publish, subscribe []string) {
	for _, verb := range events.AgentsVerbs() {
		publish = append(publish, events.AgentsFindLocal(verb), events.AgentsFindLocal(verb)+".*")
	}
	if r == Publisher {
		return append(publish, agentsAsked(tenant)...), nil
	}
	return append(publish, events.AgentsStatus("*", tenant, "*")), []string{events.AgentsHeartbeat("*", tenant, "*")}
}

// permissions says exactly what a user may do in the user's account.
func permissions(n events.Names, u User) (jwt.Permissions, error) {
	var p jwt.Permissions
	inbox := InboxOf(u.Name) + ".>"
	for _, role := range u.Roles {
		switch role {
		case Publisher, Subscriber:
			publish, subscribe := events.TenantRole(role).Subjects(n, u.Tenant)
			p.Pub.Allow.Add(publish...)
			p.Sub.Allow.Add(append(subscribe, inbox)...)
			publish, subscribe = agentsSubjects(role, u.Tenant)
			p.Pub.Allow.Add(publish...)
			p.Sub.Allow.Add(subscribe...)
		case Worker:
			for _, is := range []struct {
				names   []string
				subject func(name string) (string, error)
			}{{u.Reactors, n.Reactor}, {u.Tools, n.Tool}, {u.Effects, n.Effect}} {
				for _, name := range is.names {
					subject, err := is.subject(name)
					if err != nil {
						return p, err
					}
					p.Sub.Allow.Add(subject + " " + events.WorkerQueue)
				}
			}
			p.Sub.Allow.Add(n.Cancel("*"))
			p.Pub.Deny.Add(">") // but for answers
			p.Resp = &jwt.ResponsePermission{MaxMsgs: -1, Expires: responseTime}
		case Gateway:
			for _, tenant := range u.serves() {
				for _, as := range []events.TenantRole{events.Publisher, events.Subscriber} {
					publish, subscribe := as.Subjects(n, tenant)
					p.Pub.Allow.Add(slices.DeleteFunc(publish, func(s string) bool { return s == allLive(n, tenant) })...)
					p.Sub.Allow.Add(subscribe...)
				}
				p.Pub.Allow.Add(n.Emit(tenant, "*", "*")) // where the account maps its live events
			}
			for _, tenant := range u.keysOf() {
				p.Pub.Allow.Add(n.GatewayKeys(tenant))
			}
			for _, tenant := range u.serves() {
				key := n.Session(gatewayRealm, "*", tenant, "*")
				p.Pub.Allow.Add(key, n.SessionGet(key))
			}
			p.Sub.Allow.Add(inbox)
		case Auditor:
			for _, subject := range auditSubjects() {
				p.Pub.Allow.Add(AuditAPI + "." + subject)
			}
			p.Pub.Deny.Add(AuditAPI + ".STREAM.MSG.GET." + assets.SecretsStream(n)) // direct gets are not served
			for _, stream := range []string{assets.SessionsStream(n), assets.PushStream(n)} {
				p.Pub.Deny.Add(AuditAPI+".STREAM.MSG.GET."+stream, AuditAPI+".DIRECT.GET."+stream, AuditAPI+".DIRECT.GET."+stream+".>")
			}
			p.Pub.Allow.Add(n.OperationReport(), n.OperationList())
			p.Sub.Allow.Add(inbox)
		case Administrator:
			p.Pub.Allow.Add(">")
			p.Sub.Allow.Add(">")
		default:
			return p, &BadUserError{fmt.Sprintf("there is no role %q; give one of %v", named(string(role)), Roles())}
		}
	}
	slices.Sort(p.Pub.Allow)
	slices.Sort(p.Sub.Allow)
	return p, nil
}
