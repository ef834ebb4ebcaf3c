package events

// RetentionPolicy is the name of the policy that says when threads are archived. It is the
// only one.
const RetentionPolicy = "retention"

// PolicyDefinition says what Skein does with a tenant's threads on its own. Without a policy
// it does nothing.
type PolicyDefinition struct {
	Name             string `json:"name" schema:"required,pattern=name" doc:"Which policy: retention."`
	Description      string `json:"description,omitzero" schema:"maxLength=4096" doc:"Why it is so."`
	ArchiveAfterDays *int64 `json:"archiveAfterDays,omitzero" schema:"minimum=1,maximum=36500" doc:"Threads to which nothing was written for so many days are archived; absent: none are."`
}

// Check validates what spans more than one field.
func (d PolicyDefinition) Check() error {
	if d.Name != RetentionPolicy {
		return Invalid("/name", "there is no policy %q; the one there is has the name %s", d.Name, RetentionPolicy)
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (PolicyDefinition) Constraint() string {
	return `{"properties":{"name":{"const":"` + RetentionPolicy + `"}}}`
}
