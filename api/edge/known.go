package edge

import "context"

type knownKey struct{}

// WithKnown returns a context for the requests of a connection. known is called whenever one of them
// was authenticated.
func WithKnown(ctx context.Context, known func()) context.Context {
	return context.WithValue(ctx, knownKey{}, known)
}

// noteKnown notes that a request was authenticated.
func noteKnown(ctx context.Context) {
	if known, ok := ctx.Value(knownKey{}).(func()); ok {
		known()
	}
}
