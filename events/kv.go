package events

// Limits of key-value pairs, in bytes.
const (
	MaxKVBucket = 128
	MaxKVKey    = 512
	MaxKVValue  = MaxEventBytes
)

// SetKV sets the value of a key.
type SetKV struct {
	Bucket     string `json:"bucket" schema:"required,minLength=1,maxLength=128" doc:"Any text of at most 128 bytes."`
	Key        string `json:"key" schema:"required,minLength=1,maxLength=512" doc:"Any text of at most 512 bytes."`
	Value      JSON   `json:"value" schema:"required" doc:"At most 512 KiB."`
	TTLSeconds int64  `json:"ttlSeconds,omitzero" schema:"minimum=1,maximum=315360000" doc:"After how many seconds the key is gone; absent: never."`
}

// DeleteKV deletes a key, or all that begin with a prefix.
type DeleteKV struct {
	Bucket string  `json:"bucket,omitzero" schema:"maxLength=128" doc:"The bucket; absent, with an empty prefix: every bucket of the tenant."`
	Key    string  `json:"key,omitzero" schema:"maxLength=512" doc:"The key to delete."`
	Prefix *string `json:"prefix,omitzero" schema:"maxLength=512" doc:"Instead of key: delete all keys that begin with it."`
	Erase  bool    `json:"erase,omitzero" doc:"Also overwrite it on the disk, in about 30 ms a key."`
}

// GetKV asks for the value of a key.
type GetKV struct {
	Bucket string `json:"bucket" schema:"required,minLength=1,maxLength=128" doc:"The bucket."`
	Key    string `json:"key" schema:"required,minLength=1,maxLength=512" doc:"The key."`
}

// ListKV asks for the keys of a bucket, in the order of their bytes, and for their values.
type ListKV struct {
	Bucket string `json:"bucket" schema:"required,minLength=1,maxLength=128" doc:"The bucket."`
	Prefix string `json:"prefix,omitzero" schema:"maxLength=512" doc:"Only the keys that begin with it."`
	Order  Order  `json:"order,omitzero" doc:"asc: in the order of their bytes, the default."`
	Values bool   `json:"values,omitzero" doc:"Also the values. A page ends earlier where they do not fit into one answer."`
	Limit  *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; 100 if absent."`
	Cursor string `json:"cursor,omitzero" schema:"maxLength=1024" doc:"nextCursor of the page before."`
}

// KVEntry is the answer of kv.get.
type KVEntry struct {
	Exists bool `json:"exists" schema:"required" doc:"The key has a value."`
	Value  JSON `json:"value,omitzero" doc:"The value."`
}

// KVList is a page of keys.
type KVList struct {
	Keys       []string `json:"keys" schema:"required" doc:"The keys, in the order that was asked for."`
	Values     []JSON   `json:"values,omitempty" doc:"If asked for, the value of each key, in the same order."`
	NextCursor string   `json:"nextCursor,omitzero" doc:"For the next page; absent on the last."`
}

func kvCommands() []Command {
	list := []Command{
		command("kv.set", "Sets the value of a key of the tenant.",
			SetKV{Bucket: "conversations", Key: "chat_42", Value: JSON(`[{"role":"user","content":"Hello"}]`), TTLSeconds: 86400}),
		command("kv.delete", "Deletes a key of the tenant, or the keys that begin with a prefix.", DeleteKV{Bucket: "conversations", Key: "chat_42"}),
	}
	for i := range list {
		list[i].Tenant, list[i].Single, list[i].Unlogged = true, true, true
	}
	return list
}

func kvQueries() []Query {
	return []Query{
		query("kv.get", "The value of a key of the tenant.", GetKV{Bucket: "conversations", Key: "chat_42"}).of(WholeTenant),
		query("kv.list", "The keys of a bucket of the tenant.", ListKV{Bucket: "conversations", Prefix: "chat_"}).of(WholeTenant),
	}
}

func kvDocuments() []Document {
	return []Document{document[KVEntry]("kv_entry", "The value of a key, if it has one."), document[KVList]("kv_list", "Keys of a bucket.")}
}

// The document that answers each query, for [QueryFor].
func (GetKV) answer() (a KVEntry) { return a }
func (ListKV) answer() (a KVList) { return a }
