package threadtools

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of a search in one thread.
const (
	scanBytes    = 8 << 20 // of texts that one call compares
	excerptBytes = pageBytes / 4
	leadBytes    = 240 // that an excerpt shows before the first word that it was chosen for
	maxWords     = 64
)

// wordsOf returns the words of a question, in small letters, each once. Words of one or two
// letters say too little.
func wordsOf(question string) []string {
	var words []string
	for _, w := range strings.FieldsFunc(strings.ToLower(question), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		if utf8.RuneCountInString(w) > 2 && !slices.Contains(words, w) && len(words) < maxWords {
			words = append(words, w)
		}
	}
	return words
}

// matching picks the messages that share most words with a question.
type matching struct {
	words []string
	room  int

	scanned int
	cost    int // of all messages, whole
	found   []match
	all     []Message
	next    *Position // where the scan ended
}

type match struct {
	Message
	score int
	at    int // of the first word
}

// look compares a message. It reports whether to go on.
func (m *matching) look(one Message) bool {
	if before := m.scanned; before > 0 && before+len(one.Text) > scanBytes {
		m.next = &Position{From: one.Index}
		return false
	}
	m.scanned += len(one.Text) + messageBytes
	if m.cost <= m.room {
		if m.cost += messageBytes + costOf(one.Text); m.cost <= m.room {
			m.all = append(m.all, one)
		}
	}
	lower := strings.ToLower(one.Text)
	if len(lower) != len(one.Text) { // some letters have another length in small letters
		lower = one.Text
	}
	found := match{Message: one, at: len(one.Text)}
	for _, w := range m.words {
		if at := strings.Index(lower, w); at >= 0 {
			found.score++
			found.at = min(found.at, at)
		}
	}
	if found.score > 0 {
		m.found = append(m.found, found)
	}
	return true
}

// answers fills the page with what was found. It reports whether that is an answer: if no
// message shares a word with the question, it is not.
func (m *matching) answers(p *Page) bool {
	if m.cost <= m.room && m.next == nil {
		p.Messages = append(p.Messages, m.all...)
		return true
	}
	slices.SortStableFunc(m.found, func(a, b match) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.Index, a.Index)) })
	for i := range m.found {
		one := m.found[i].excerpt()
		if m.room -= messageBytes + costOf(one.Text); m.room < 0 {
			break
		}
		p.Messages = append(p.Messages, one)
	}
	slices.SortFunc(p.Messages, func(a, b Message) int { return cmp.Compare(a.Index, b.Index) })
	p.Next = m.next
	switch {
	case len(p.Messages) > 0:
		p.Note += " These messages share words with the question; others are left out: read them with from."
	case m.next != nil:
		p.Note += " No message before next.from shares a word with the question."
	}
	return len(p.Messages) > 0 || m.next != nil
}

// excerpt returns the message, or of a long one the part around the first word.
func (m *match) excerpt() Message {
	one := m.Message
	if prefix(one.Text, excerptBytes) == len(one.Text) {
		return one
	}
	one.Skipped = aligned(one.Text, max(0, m.at-leadBytes))
	rest := one.Text[one.Skipped:]
	fits := prefix(rest, excerptBytes)
	one.Text, one.Cut = rest[:fits], len(rest)-fits
	return one
}
