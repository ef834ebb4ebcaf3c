// Package chattest writes conversations for tests: a workshop for bicycles, its
// customers and an agent with tools, in the OpenAI chat format.
//
// A seed and a number always make the same text, so that a test can say what it
// must find. They have what real conversations have: system prompts of some
// kilobytes, turns without and with calls, calls at the same time, results of many
// sizes, failures, texts in several scripts, content as text and as parts, and
// turns whose last word is a call.
package chattest
