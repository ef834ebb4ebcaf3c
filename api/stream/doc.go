// Package stream serves streams over HTTP: server-sent events, and WebSockets. A protocol brings what
// is sent; beginning, pings, slow readers, errors and the end are here, once.
//
//	return stream.Serve(w, r, stream.Protocol{Done: &stream.Frame{Data: []byte("[DONE]")}},
//		func(ctx context.Context, out *stream.Writer) error {
//			for chunk, err := range c.Client.Chunks(ctx, thread, execution) {
//				...
//				if err := out.Send(stream.Frame{ID: ..., Data: ...}); err != nil {
//					return err
//				}
//			}
//			return nil
//		})
//
// # The life of a stream
//
//	source returns an error before it has begun    the answer of the request, with its status
//	Begin, or the first Write or Send              200 and the headers, flushed; or 429
//	every 15 s                                     a ping, whatever else is sent
//	a reader takes nothing for 30 s                Write or Send returns an error, and the connection is cut
//	the reader has gone                            ctx ends
//	the credential ends                            ctx ends; [Protocol.Revoked]
//	the edge closes                                ctx ends; [Protocol.Closing], or it is cut off, and resumed
//	source returns nil                             [Protocol.Done]
//	source returns an error                        [Protocol.Failed], or the stream is cut off
//
// The limits are those of package edge: a stream exchanges its place among requests for one among
// streams, and what is sent has the pace of its tenant. A slow reader is counted by time alone: each
// write that the connection accepts allows 30 s more.
//
// # What protocols differ in
//
// These differences are part of protocols, and each is a field or a line of its source:
//
//	                       resumes after                             ends with             tells of errors
//	/api .../events        Last-Event-ID, from: a version            a deleted thread      no: the reader resumes
//	/api/events            Last-Event-ID, from: position in the log  never                 no: the reader resumes
//	/api .../chunks        Last-Event-ID: index of a chunk           the last chunk        event: error
//	/api .../react         Last-Event-ID: index of a chunk           event: done           event: error
//	/chat                  nothing: the message is sent whole        [DONE]                no: the reader resumes
//	/agui                  nothing: connect sends the run whole      RUN_FINISHED          RUN_ERROR, also when it is cut off
//	/a2a                   nothing: SubscribeToTask begins with the task  a terminal state     an error, also when it is cut off
//	/v1/responses          starting_after: sequence_number           [DONE]                event: error, also when it is cut off
//	/console/live          Last-Event-ID, seq: position in the log   event: ended          no: the browser resumes
//	/api .../socket        from of a watch: a version                the client            a frame
//	/v1/responses, socket  nothing: previous_response_id             an hour               a frame
//
// A source that has a position writes it to [Frame.ID], and reads it back from [HeaderLast]. A reader
// that resumes is sent the frames after it; package stream stores none.
//
// # WebSockets
//
// A [Socket] has the same limits, pace and ends. It pings every 20 s and closes with 1001 when the edge
// closes, with 1008 when the credential ends, and with 1008 after ten malformed messages in a row.
package stream
