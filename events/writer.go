package events

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// The events of exclusive writers.
const (
	WriterClaimedType  Type = "writer.claimed"
	WriterRenewedType  Type = "writer.renewed"
	WriterReleasedType Type = "writer.released"
)

// How long a claim or a renewal lasts, in milliseconds.
const (
	MinWriterMs     = 1_000
	DefaultWriterMs = 30_000
	MaxWriterMs     = 300_000
)

// WriterPrefix begins the tokens of exclusive writers.
const WriterPrefix = "wtk_"

// WriterToken returns the token of the hold that a writer.claim with that command id begins. It
// cannot be guessed without the key, which is the store's own; events have its digest.
func WriterToken(key []byte, tenant, commandID string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(appendParts(nil, "writer's token", tenant, commandID))
	return WriterPrefix + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// WriterCommandID returns the command id that the events of a writer.claim have, in place of
// its own.
func WriterCommandID(commandID string) string {
	sum := sha256.Sum256(appendParts(nil, "writer's command", commandID))
	return "claim-" + hex.EncodeToString(sum[:])
}

// WriterDigest returns what an event records of a writer's token, which is a secret.
func WriterDigest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// WriterClaimed records that a writer holds the thread: until then, other writers' changes are
// refused.
type WriterClaimed struct {
	Holder      string `json:"holder" schema:"required,minLength=1,maxLength=256" doc:"Who holds the thread."`
	TokenDigest string `json:"tokenDigest" schema:"required,maxLength=64" doc:"The hex SHA-256 of the writer's token."`
	TTLMs       int64  `json:"ttlMs" schema:"required,minimum=1" doc:"How long it lasts without a renewal, in milliseconds."`
	Until       string `json:"until" schema:"required,pattern=time" doc:"When the hold ends."`
}

// WriterRenewed records that a writer holds the thread for longer.
type WriterRenewed struct {
	Until string `json:"until" schema:"required,pattern=time" doc:"When the hold ends."`
}

// WriterReleased records that a writer no longer holds the thread.
type WriterReleased struct {
	Holder string `json:"holder" schema:"required,minLength=1,maxLength=256" doc:"Who held it."`
}

// ClaimWriter makes the caller the only writer of a thread.
type ClaimWriter struct {
	Holder string `json:"holder" schema:"required,minLength=1,maxLength=256" doc:"Who holds the thread, for refusals of others."`
	TTLMs  int64  `json:"ttlMs,omitzero" schema:"minimum=1000,maximum=300000" doc:"How long the hold lasts without a renewal, in milliseconds; default 30000."`
}

// RenewWriter extends a hold by the time that it was claimed for.
type RenewWriter struct {
	Token string `json:"token" schema:"required,minLength=1,maxLength=128" doc:"The token of the claim."`
}

// ReleaseWriter ends a hold.
type ReleaseWriter struct {
	Token string `json:"token" schema:"required,minLength=1,maxLength=128" doc:"The token of the claim."`
}

type writerRules interface {
	WriterClaimed(e *Event, d WriterClaimed) error
	WriterRenewed(e *Event, d WriterRenewed) error
	WriterReleased(e *Event, d WriterReleased) error
}

const (
	exampleToken = WriterPrefix + "3Zr0cDk5cS7mWl1Yb2Vqk9nXo4uJt6hEa8pFgQiLsTY"
	exampleUntil = "2026-02-20T12:00:30.123456Z"
)

func writerEvents() []Row {
	return []Row{
		row(WriterClaimedType, 1, "A writer holds the thread; others may not change it.",
			WriterClaimed{Holder: "editor-7", TokenDigest: WriterDigest(exampleToken), TTLMs: DefaultWriterMs, Until: exampleUntil}, Rules.WriterClaimed),
		row(WriterRenewedType, 1, "The writer holds the thread for longer.", WriterRenewed{Until: exampleUntil}, Rules.WriterRenewed),
		row(WriterReleasedType, 1, "The writer no longer holds the thread.", WriterReleased{Holder: "editor-7"}, Rules.WriterReleased),
	}
}

func writerCommands() []Command {
	list := []Command{
		command("writer.claim", "Makes the caller the only writer of a thread until the hold ends; its token goes into the requests of the holder.",
			ClaimWriter{Holder: "editor-7", TTLMs: DefaultWriterMs}, WriterClaimedType),
		command("writer.renew", "Extends a hold. While more than two thirds of it are left, it changes nothing.", RenewWriter{Token: exampleToken}, WriterRenewedType),
		command("writer.release", "Ends a hold. If it has ended, it changes nothing.", ReleaseWriter{Token: exampleToken}, WriterReleasedType),
	}
	for i := range list {
		list[i].Single = true
	}
	return list
}
