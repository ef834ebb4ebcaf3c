// Package quota divides what a process has among tenants and principals: how often one may do
// something, how many at once, and in what order while others are active. Requests over NATS, HTTP
// and work in the background use the same few types.
//
//   - [Rates] holds a token bucket for each name.
//   - [Gate] admits requests that count for one or several names, such as a credential and its
//     tenant: it holds each name to a rate and to numbers of what it has at once, or refuses.
//   - [Activity] is the clock: it knows which tenants used the process last. While a tenant is alone,
//     what follows lets it use everything.
//   - [Fair] is the share of a tenant while others are active. [Queue] starts requests that wait
//     in line at that share; [Pace] delays callers that wait themselves.
//   - [Floods] detects tenants that send whatever the replies are.
//   - [Pool] has places for scarce work. A tenant may take another place only while at least as
//     many are free as it holds. Alone it gets half of them; of two that take all they can, each
//     gets a third; and one that comes later always finds some free. An operator may set a tenant's
//     most besides. Of those that wait, the tenant that holds the fewest is next, and of several the
//     one that took its last place first.
//   - [Work] counts what a request does beyond its start, and [Pauses] spreads redeliveries.
//
// # The buckets
//
// A bucket is a rate.Limiter of golang.org/x/time/rate whose tokens are millionths of a request, so
// that work may weigh a part of one. There are three ways to use it up. A request that is refused
// when the bucket is empty takes one token or none. Work that is done already and waits afterwards
// is charged in full, and the bucket may owe: later work waits for it. A tenant that is alone is
// charged what is there at most, and owes nothing: what it did alone is not held against it when
// another one comes, nor may it begin with a burst.
//
// # Bounds
//
// A set of buckets remembers 10,000 names. When it has more, each new name looks at a few others
// and forgets those whose bucket is full, which are like names that never came. A spent bucket is
// never forgotten, whatever names come, and no call looks at more than a few. What a name holds at
// once is forgotten when it holds nothing.
//
// A time before one that was seen is taken as that one: a clock that goes back adds no tokens.
package quota
