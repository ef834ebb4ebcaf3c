// Package connect says how Skein's own programs connect to a NATS server: with
// which credentials, which authority they trust, and under which prefix their
// inboxes are. It reads no more of credentials than it needs, and nothing of
// them is in its errors.
package connect
