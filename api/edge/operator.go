package edge

// Operators are the subjects of principals who operate the server, and may see what it knows of
// all tenants together.
type Operators map[string]bool

// OperatorKeys returns the operators who have keys with some ids.
func OperatorKeys(ids []string) Operators {
	o := Operators{}
	for _, id := range ids {
		o["key:"+id] = true
	}
	return o
}

// May reports whether a caller operates the server: at a desk, where everybody may do
// everything, or with the key of an operator.
func (o Operators) May(c *Caller) bool { return c.Desk || o[c.Subject] }
