package events

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// The events of the links with which a thread is shared.
const (
	ShareCreatedType Type = "share.created"
	ShareRevokedType Type = "share.revoked"
)

// SharePrefix begins the ids of shares.
const SharePrefix = "shr_"

// MaxShares is the number of shares of a thread that may be in force.
const MaxShares = 100

// ShareCreated records that a thread is shared: its messages can be read with the token.
// The token itself is nowhere stored.
type ShareCreated struct {
	ID        string `json:"id" schema:"required,pattern=id" doc:"The share's id."`
	Digest    string `json:"digest" schema:"required,maxLength=64" doc:"SHA-256 of the token, in hex."`
	ExpiresAt string `json:"expiresAt,omitzero" schema:"pattern=time" doc:"When it ends; absent: when it is revoked."`
}

// ShareRevoked records that a share has ended.
type ShareRevoked struct {
	ID string `json:"id" schema:"required,pattern=id" doc:"The share's id."`
}

// Data of the commands and queries.
type (
	// ShareThread makes a link to a thread: a token with which its messages can be read.
	ShareThread struct {
		ExpiresAt string `json:"expiresAt,omitzero" schema:"pattern=time" doc:"When it ends; absent: when it is revoked."`
	}
	// UnshareThread revokes a share.
	UnshareThread struct {
		ShareID string `json:"shareId" schema:"required,pattern=id" doc:"The share."`
	}
	// ListShares asks for the shares of a thread, or of all threads of the tenant, that were not
	// revoked, oldest first.
	ListShares struct {
		ThreadID string `json:"threadId,omitzero" schema:"pattern=threadRef" doc:"The thread; absent: all of the tenant's."`
		Actor    string `json:"actor,omitzero" schema:"maxLength=256" doc:"Only those that this actor made, such as key:5f0c2e9b7d41."`
		Limit    *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; if absent, 50 of a tenant's, and of a thread's as many as one answer holds."`
		Cursor   string `json:"cursor,omitzero" schema:"maxLength=512" doc:"nextCursor of the page before."`
		At       *At    `json:"at,omitzero" doc:"As they were then."`
		Fresh
	}
	// ReadShared asks for the messages of a shared thread.
	ReadShared struct {
		Token       string `json:"token" schema:"required,maxLength=256" doc:"The token that thread.share returned."`
		FromMessage *int64 `json:"fromMessage,omitzero" schema:"minimum=0" doc:"The index of the first message to return; 0 if absent."`
	}
)

// Share is the document of a share.
type Share struct {
	ID        string `json:"id" schema:"required,pattern=id" doc:"The id."`
	ThreadID  string `json:"threadId" schema:"required,pattern=thread" doc:"The thread that is shared."`
	CreatedAt string `json:"createdAt" schema:"required,pattern=time" doc:"When it was made."`
	ExpiresAt string `json:"expiresAt,omitzero" schema:"pattern=time" doc:"When it ends; absent: when it is revoked."`
	Actor     string `json:"actor,omitzero" schema:"maxLength=256" doc:"Who made it."`
	Digest    string `json:"digest,omitzero" schema:"maxLength=64" doc:"Internal: SHA-256 of the token, in hex; not in answers."`
	Stamp
}

// ShareList is shares of a thread or a tenant.
type ShareList struct {
	Shares     []Share `json:"shares" schema:"required" doc:"The shares."`
	NextCursor string  `json:"nextCursor,omitzero" doc:"The cursor of the next page, if there is one."`
}

// SharedThread is what the holder of a token sees of a thread: its messages.
type SharedThread struct {
	Title            string            `json:"title,omitzero" schema:"maxLength=1024" doc:"The thread's title."`
	Created          int64             `json:"created" schema:"required,minimum=0" doc:"When the thread was created, in milliseconds since the epoch."`
	Messages         []DocumentMessage `json:"messages" schema:"required" doc:"The messages, as thread.document has them."`
	NextMessageIndex int64             `json:"nextMessageIndex,omitzero" schema:"minimum=1" doc:"The fromMessage of what follows, if more does."`
}

// ShareToken returns the token of a share that a command makes. It cannot be guessed without
// the key, which is the process's own.
func ShareToken(key []byte, tenant, thread, commandID, shareID string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(appendParts(nil, tenant, thread, commandID, shareID))
	return shareID + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// ShareOf returns the id of the share that a token is of. It says nothing of the token.
func ShareOf(token string) (id string, ok bool) {
	id, secret, ok := strings.Cut(token, ".")
	return id, ok && secret != "" && ValidID(id)
}

// ShareDigest returns what is stored of a token.
func ShareDigest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Opens reports whether a token is the share's, and the share has not ended. How long it takes
// does not depend on the digest.
func (s *Share) Opens(token string, now Time) bool {
	same := subtle.ConstantTimeCompare([]byte(ShareDigest(token)), []byte(s.Digest)) == 1
	if s.ExpiresAt == "" {
		return same
	}
	end, err := ParseTime(s.ExpiresAt)
	return same && err == nil && now < end
}

type shareRules interface {
	ShareCreated(e *Event, d ShareCreated) error
	ShareRevoked(e *Event, d ShareRevoked) error
}

const exampleShare = "shr_0190c0de00007000a000000000000001"

func shareEvents() []Row {
	return []Row{
		row(ShareCreatedType, 1, "The thread was shared.",
			ShareCreated{ID: exampleShare, Digest: "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9", ExpiresAt: "2026-03-20T10:00:00Z"}, Rules.ShareCreated),
		row(ShareRevokedType, 1, "A share of the thread was revoked.", ShareRevoked{ID: exampleShare}, Rules.ShareRevoked),
	}
}

func shareCommands() []Command {
	share := command("thread.share", "Makes a link with which the thread's messages can be read. The token is in this reply only.",
		ShareThread{ExpiresAt: "2026-03-20T10:00:00Z"}, ShareCreatedType)
	share.Single = true
	return []Command{share, command("thread.unshare", "Revokes a share of the thread.", UnshareThread{ShareID: exampleShare}, ShareRevokedType)}
}

func shareQueries() []Query {
	return []Query{
		query("share.list", "The shares of a thread, or of all threads of the tenant.", ListShares{ThreadID: exampleThread}).listing("shares", "threadId"),
		query("thread.shared", "The messages of a shared thread, for the holder of a token.",
			ReadShared{Token: exampleShare + ".kE1x0mJm0n2c3yq0xJ8Zb2hXh0m3l3o1mJm0n2c3yq0"}).of(Unscoped),
	}
}

func shareDocuments() []Document {
	return []Document{
		document[Share]("share", "A share of a thread."), document[ShareList]("share_list", "A thread's shares."),
		document[SharedThread]("shared_thread", "What the holder of a token sees of a thread."),
	}
}

// The document that answers each query, for [QueryFor].
func (ListShares) answer() (a ShareList)    { return a }
func (ReadShared) answer() (a SharedThread) { return a }
