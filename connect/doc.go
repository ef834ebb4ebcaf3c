// Package connect makes the options with which a program connects to the NATS server of
// Skein: credentials, the authorities to trust, and the prefix of inboxes that the
// credentials permit. client.Connect uses it. A program that makes its own connection, for
// client.New or to subscribe to the timeline itself, uses it too:
//
//	opts, err := connect.Options{Creds: "app.creds"}.NATS("orders")
//	nc, err := nats.Connect(url, opts...)
//
// It reads no more of credentials than it needs, and its errors hold nothing of them, nor
// of a password in a URL. What may enter is what decides how to connect; who may do what is
// decided by operator/access.
package connect
