package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// queue is the queue group in which the services answer, so that each request
// is done by one process.
const queue = "skein"

const schemaFormat = "application/schema+json;version=draft-2020-12"

// asyncAPI writes the AsyncAPI 3.0 document: every subject, every message. It refers to nothing
// outside itself, so that tools can read it wherever it is copied or fetched to.
func asyncAPI() ([]byte, error) {
	messages, err := messages()
	if err != nil {
		return nil, err
	}
	schemas, err := schemas()
	if err != nil {
		return nil, err
	}
	doc := object{
		{"asyncapi", "3.0.0"},
		{"info", object{
			{"title", "Skein"},
			{"version", events.SpecVersion},
			{"description", "Event-sourced threads of AI agents on NATS JetStream. The operations are those of Skein: it receives commands and queries, and sends events. Subjects begin with skein unless another prefix is configured."},
			{"license", object{{"name", "Apache-2.0"}}},
		}},
		{"defaultContentType", "application/json"},
		{"servers", object{{"local", object{
			{"host", "127.0.0.1:4222"},
			{"protocol", "nats"},
			{"description", "skein serve, with the NATS server inside"},
		}}}},
		{"channels", channels()},
		{"operations", operations()},
		{"components", object{{"messages", messages}, {"messageTraits", traits()}, {"schemas", schemas}}},
	}
	var b bytes.Buffer
	b.WriteString("# Written by dev/generate from the package events. Change it there, then run make generate.\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

func ref(path string) object { return object{{"$ref", path}} }

// component is a reference into the document's components.
func component(kind, name string) object { return ref("#/components/" + kind + "/" + name) }

// Names of the messages in components; commands, queries and events may share
// a name otherwise.
func commandMessage(name string) string    { return "command-" + name }
func queryMessage(name string) string      { return "query-" + name }
func answerMessage(resource string) string { return "answer-" + resource }
func eventMessage(t events.Type) string    { return "event-" + string(t) }
func inChannel(channel, name string) object {
	return ref("#/channels/" + channel + "/messages/" + name)
}

// fileSchema is the name in components of a schema of schema/files.
func fileSchema(path string) string { return strings.ReplaceAll(path, "/", "-") }

// schemaFile refers to a schema of schema/files from another one, whole from a message.
func schemaFile(path string) object {
	return ref("#/components/schemas/" + fileSchema(path) + "/schema")
}
func whole(path string) object     { return component("schemas", fileSchema(path)) }
func payload(schema object) object { return object{{"schemaFormat", schemaFormat}, {"schema", schema}} }

func messages() (object, error) {
	var out object
	add := func(name, title, summary, content string, payload object, more ...entry) {
		m := object{{"name", title}, {"title", title}, {"summary", summary}, {"contentType", content}, {"payload", payload}}
		out = append(out, entry{name, append(m, more...)})
	}
	const plain = "application/json"
	for _, c := range events.Commands() {
		example, err := c.ExampleRequest()
		if err != nil {
			return nil, err
		}
		add(commandMessage(c.Name), c.Name, c.Doc, plain, payload(object{{"allOf", list(
			schemaFile("resources/request"),
			object{{"properties", object{{"data", schemaFile("commands/" + c.Name)}}}},
		)}}), shown(example))
	}
	add("reply", "reply", "The command was done.", plain, whole("resources/reply"))
	answered := map[string]bool{}
	for _, q := range events.Queries() {
		add(queryMessage(q.Name), q.Name, q.Doc, plain, whole("queries/"+q.Name), shown(q.Example),
			entry{"headers", component("schemas", "queryHeaders")})
		answer, err := answerOf(q)
		if err != nil {
			return nil, err
		}
		if !answered[answer.Name] {
			answered[answer.Name] = true
			add(answerMessage(answer.Name), answer.Name, answer.Doc, plain, whole("resources/"+answer.Name))
		}
	}
	add("error", "error", "The command or query was refused.", plain, component("schemas", "error"),
		entry{"headers", component("schemas", "errorHeaders")})
	for _, r := range events.Catalog() {
		add(eventMessage(r.Type), string(r.Type), r.Doc, events.EventContentType, payload(object{{"allOf", list(
			schemaFile("event-envelope"),
			object{{"properties", object{
				{"type", object{{"const", string(r.Type)}}},
				{"data", schemaFile("events/" + string(r.Type))},
			}}},
		)}}), entry{"traits", list(component("messageTraits", "timeline"))})
	}
	add("commit", "commit", "All events of one command on one thread.", events.BatchContentType, whole("commit"),
		entry{"traits", list(component("messageTraits", "log"))})
	return out, nil
}

// shown is the example of a message.
func shown(example any) entry {
	b, err := json.Marshal(example, json.Deterministic(true))
	if err != nil { // a value of this program
		panic("generate: " + err.Error())
	}
	return entry{"examples", list(object{{"payload", events.JSON(b)}})}
}

func traits() object {
	text := func(doc string) object { return object{{"type", "string"}, {"description", doc}} }
	return object{
		{"timeline", object{{"headers", object{
			{"type", "object"},
			{"properties", object{{events.HeaderSeq, text("The sequence in the log of the commit that holds the event.")}}},
		}}}},
		{"log", object{{"headers", object{
			{"type", "object"},
			{"properties", object{
				{events.HeaderChain, text("hex(SHA-256(previous || body)), where previous is the chain of the thread's commit before, empty for its first.")},
				{events.HeaderVersion, text("The thread's version after the commit.")},
				{"Nats-Expected-Last-Subject-Sequence", text("The sequence of the thread's commit before; 0 for its first.")},
			}},
		}}}},
	}
}

// schemas returns the schemas of schema/files that messages have, and those that have no file.
func schemas() (object, error) {
	files, err := schema.Files()
	if err != nil {
		return nil, err
	}
	out := ownSchemas()
	for _, f := range files {
		path := strings.TrimSuffix(f.Path, ".json")
		if strings.HasPrefix(path, "definitions/") {
			continue
		}
		inside, err := embedded(fileSchema(path), f.Body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		out = append(out, entry{fileSchema(path), payload(inside)})
	}
	return out, nil
}

// embedded returns a schema as a part of the document: its references to its own definitions name
// their place in the document, so it has no $id to resolve them by.
func embedded(name string, body []byte) (object, error) {
	body = bytes.ReplaceAll(body, []byte(`"#/$defs/`), []byte(`"#/components/schemas/`+name+`/schema/$defs/`))
	var doc yaml.Node
	if err := yaml.Unmarshal(body, &doc); err != nil { // JSON is YAML
		return nil, err
	}
	var out object
	for member := range slices.Chunk(doc.Content[0].Content, 2) {
		if key := member[0].Value; key != "$id" && key != "$schema" {
			inBlocks(member[1])
			out = append(out, entry{key, member[1]})
		}
	}
	return out, nil
}

// inBlocks has a value of JSON written as YAML is, a line for each member.
func inBlocks(n *yaml.Node) {
	n.Style = 0
	for _, part := range n.Content {
		inBlocks(part)
	}
}

// ownSchemas returns the schemas that have no file.
func ownSchemas() object {
	text := object{{"type", "string"}}
	var names []string
	for _, code := range codes() {
		names = append(names, string(code))
	}
	return object{
		{"error", object{
			{"type", "object"},
			{"required", list("error")},
			{"properties", object{{"error", object{
				{"type", "object"},
				{"required", list("code", "message")},
				{"properties", object{
					{"code", object{{"type", "string"}, {"enum", list(names...)}}},
					{"message", text},
					{"details", object{{"type", "object"}, {"description", "More of it, by the code: the path of an invalid_request, the currentVersion of a version_conflict, holder and until of a held, entity, from, to and allowed of an illegal_transition."}}},
				}},
			}}}},
		}},
		{"queryHeaders", object{
			{"type", "object"},
			{"properties", object{
				{events.HeaderWait, object{{"type", "string"}, {"description", "For how many milliseconds the sender waits for the answer; then it is given up. 30,000 at most, and if absent."}}},
			}},
		}},
		{"errorHeaders", object{
			{"type", "object"},
			{"properties", object{
				{events.HeaderErrorCode, object{{"type", "string"}, {"description", "The number of the code, as HTTP has it."}}},
				{events.HeaderError, object{{"type", "string"}, {"description", "The code."}}},
			}},
		}},
	}
}
