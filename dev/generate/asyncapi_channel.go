package main

import (
	"strings"

	"github.com/skein-threads/skein/events"
)

// channels returns every public subject.
func channels() object {
	var commands, queries, timeline, log, replies, answers object
	for _, c := range events.Commands() {
		commands = append(commands, entry{commandMessage(c.Name), component("messages", commandMessage(c.Name))})
	}
	seen := map[string]bool{}
	for _, q := range events.Queries() {
		queries = append(queries, entry{queryMessage(q.Name), component("messages", queryMessage(q.Name))})
		if answer, err := answerOf(q); err == nil && !seen[answer.Name] { // messages has told of the error
			seen[answer.Name] = true
			answers = append(answers, entry{answerMessage(answer.Name), component("messages", answerMessage(answer.Name))})
		}
	}
	var types []string
	for _, r := range events.Catalog() {
		timeline = append(timeline, entry{eventMessage(r.Type), component("messages", eventMessage(r.Type))})
		types = append(types, string(r.Type))
	}
	log = object{{"commit", component("messages", "commit")}}
	refusal := entry{"error", component("messages", "error")}
	replies = object{{"reply", component("messages", "reply")}, refusal}
	answers = append(answers, refusal)

	n := events.DefaultNames()
	nouns, verbs := words(commandNames())
	asked, how := words(queryNames())
	noun := func(values []string) entry { return parameter("noun", "What it is about.", values...) }
	verb := func(values []string) entry { return parameter("verb", "What is to be done.", values...) }
	aggregate := parameter("thread", "The thread; K- and a digest for the claim of a key, tenant for what belongs to no thread.")
	return object{
		{"command", channel(n.Command("{tenant}", "{noun}.{verb}"), "Commands: request and reply.", commands, tenantParameter(), noun(nouns), verb(verbs))},
		{"commandReply", inbox("The inbox of who sent the command.", replies)},
		{"submit", append(channel(n.Submit("{tenant}", "{noun}.{verb}"), "Commands that are stored and done exactly once, with no reply. One that is refused appears on the timeline as command.rejected.", commands, tenantParameter(), noun(nouns), verb(verbs)),
			jetStream(n.Stream("COMMANDS"), "work queue", "a message is removed when its command was done or refused"))},
		{"query", channel(n.Query("{tenant}", "{noun}.{verb}"), "Queries: request and reply.", queries, tenantParameter(), noun(asked), verb(how))},
		{"queryReply", inbox("The inbox of who sent the query.", answers)},
		{"timeline", append(channel(n.Timeline("{tenant}", "{thread}", "{event}"), "Each event of the log, once and in order, a message of its own. An event's name has one dot or more, so subscribe with > behind it or with the whole name.", timeline,
			tenantParameter(), parameter("thread", "The thread."), parameter("event", "The event's type.", types...)),
			jetStream(n.Stream("TIMELINE"), "limits", "7 days by default; derived from the log; chunk.emitted is not in it"))},
		{"chunks", append(channel(n.Chunk("{tenant}", "{thread}", "{execution}"), "What an execution streams, in order and numbered; republished on the thread's timeline as chunk.emitted. Skein alone writes it.",
			object{{eventMessage(events.ChunkEmittedType), component("messages", eventMessage(events.ChunkEmittedType))}},
			tenantParameter(), parameter("thread", "The thread."), parameter("execution", "The execution.")),
			jetStream(n.Stream("CHUNKS"), "limits", "1 hour by default; republished"))},
		{"log", append(channel(n.Log("{tenant}", "{thread}"), "The truth: one message a commit, for ever. Skein alone writes it.", log, tenantParameter(), aggregate),
			jetStream(n.Stream("LOG"), "limits", "for ever, here or in the archive of cold threads; only a purge overwrites and deletes commits"))},
	}
}

func channel(address, doc string, messages object, parameters ...entry) object {
	return object{{"address", address}, {"description", doc}, {"messages", messages}, {"parameters", object(parameters)}}
}

// inbox is a channel whose address comes with the request.
func inbox(doc string, messages object) object {
	return object{{"address", nil}, {"description", doc}, {"messages", messages}}
}

func parameter(name, doc string, values ...string) entry {
	p := object{{"description", doc}}
	if len(values) > 0 {
		p = append(p, entry{"enum", list(values...)})
	}
	return entry{name, p}
}

func tenantParameter() entry { return parameter("tenant", "The tenant; there is no default one.") }

// jetStream says which stream keeps the channel's messages, and how.
func jetStream(stream, retention, doc string) entry {
	return entry{"x-nats-jetstream", object{{"stream", stream}, {"retention", retention}, {"description", doc}}}
}

func commandNames() []string {
	var out []string
	for _, c := range events.Commands() {
		out = append(out, c.Name)
	}
	return out
}

func queryNames() []string {
	var out []string
	for _, q := range events.Queries() {
		out = append(out, q.Name)
	}
	return out
}

// words takes names noun.verb apart, each word once, in the order in which they
// come.
func words(names []string) (nouns, verbs []string) {
	seen := map[string]bool{}
	add := func(to *[]string, kind, word string) {
		if !seen[kind+word] {
			seen[kind+word] = true
			*to = append(*to, word)
		}
	}
	for _, name := range names {
		noun, verb, _ := strings.Cut(name, ".")
		add(&nouns, "noun ", noun)
		add(&verbs, "verb ", verb)
	}
	return nouns, verbs
}

// operations returns what Skein does: receive commands and queries, send events.
func operations() object {
	inQueue := entry{"bindings", object{{"nats", object{{"queue", queue}, {"bindingVersion", "0.1.0"}}}}}
	var out object
	var submitted []any
	for _, c := range events.Commands() {
		submitted = append(submitted, inChannel("submit", commandMessage(c.Name)))
		out = append(out, entry{commandMessage(c.Name), object{
			{"action", "receive"}, {"channel", ref("#/channels/command")}, {"summary", c.Doc},
			{"messages", list(inChannel("command", commandMessage(c.Name)))},
			inQueue,
			{"reply", object{
				{"channel", ref("#/channels/commandReply")},
				{"messages", list(inChannel("commandReply", "reply"), inChannel("commandReply", "error"))},
			}},
		}})
	}
	out = append(out, entry{"submit", object{
		{"action", "receive"}, {"channel", ref("#/channels/submit")}, {"summary", "Stores a command and does it exactly once."}, {"messages", submitted},
	}})
	for _, q := range events.Queries() {
		answer, err := answerOf(q)
		if err != nil {
			continue // messages has told of it
		}
		out = append(out, entry{queryMessage(q.Name), object{
			{"action", "receive"}, {"channel", ref("#/channels/query")}, {"summary", q.Doc},
			{"messages", list(inChannel("query", queryMessage(q.Name)))},
			inQueue,
			{"reply", object{
				{"channel", ref("#/channels/queryReply")},
				{"messages", list(inChannel("queryReply", answerMessage(answer.Name)), inChannel("queryReply", "error"))},
			}},
		}})
	}
	var sent []any
	for _, r := range events.Catalog() {
		sent = append(sent, inChannel("timeline", eventMessage(r.Type)))
	}
	return append(out,
		entry{"timeline", object{
			{"action", "send"}, {"channel", ref("#/channels/timeline")}, {"summary", "Puts each event on its thread's timeline."}, {"messages", sent},
		}},
		entry{"log", object{
			{"action", "send"}, {"channel", ref("#/channels/log")}, {"summary", "Appends a commit."},
			{"messages", list(inChannel("log", "commit"))},
		}},
	)
}
