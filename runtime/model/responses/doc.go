// Package responses calls endpoints that speak the OpenAI Responses protocol: OpenAI itself, and
// compatible ones. It is a codec of package model, which calls the endpoint and says how a call ends.
//
// The endpoint is asked to store nothing, and none of its state is used: each request has the whole
// conversation. Encrypted reasoning is asked for where the model reasons and the endpoint neither
// stores it nor takes its text; "include" in the model's params decides otherwise. Calls that the
// endpoint made itself, such as a web_search_call, go back to it. Messages keep their phase and
// annotations.
//
// An answer ends with response.completed or response.incomplete. Events of unknown types are
// skipped: the last event contains everything. response.failed, response.cancelled and an error
// event are failures.
package responses
