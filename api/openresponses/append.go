package openresponses

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// appendBytes bounds the items that one command appends. An item that is larger has a command of
// its own, so that a refusal of its size tells which it is.
const appendBytes = events.MaxEventBytes / 4

// additions are the commands that add the items of a request to a thread.
type additions struct {
	path   string // of the items in the request
	before int    // how many commands come first in the commit
	begins []int  // the first item of each command
}

// add adds the items to the commands of a commit.
func (a *additions) add(list []events.SubCommand, items []events.NewItem) ([]events.SubCommand, error) {
	a.before = len(list)
	for from, to := 0, 0; from < len(items); from = to {
		for size := 0; to < len(items); to++ {
			size += len(items[to].Content) + len(items[to].Metadata) + itemOverhead
			if size > appendBytes && to > from {
				break
			}
		}
		one, err := client.Sub("item.append", events.AppendItems{Items: items[from:to]})
		if err != nil {
			return nil, err
		}
		a.begins = append(a.begins, from)
		list = append(list, one)
	}
	return list, nil
}

// itemOverhead is at least what an item takes in a command besides its content and metadata.
const itemOverhead = 256

// refused returns a refusal of the commit with its path in the caller's request: the path of one of
// its items, or of its settings.
func (a *additions) refused(err error) error {
	e := *events.AsError(err)
	if e.Details == nil {
		return err
	}
	details := *e.Details
	path := a.path
	switch e.Code {
	case events.PayloadTooLarge:
		if n := details.Command; n != nil && *n >= a.before && *n < a.before+len(a.begins) {
			path += "/" + strconv.Itoa(a.begins[*n-a.before])
		}
		e.Message = fmt.Sprintf("%s takes %d bytes as it is stored (the last item with the parameters of the request), and may take %d: divide it, or refer to a file",
			strings.TrimPrefix(path, "/"), details.Size, details.Limit)
	case events.InvalidRequest:
		e.Message = strings.TrimPrefix(e.Message, details.Path+": ")
		path = a.pathOf(details.Path)
	default:
		return err
	}
	details.Path, details.Command = path, nil
	e.Details = &details
	return &e
}

// pathOf returns the path in the request of a path in the commit.
func (a *additions) pathOf(inCommit string) string {
	number, rest, _ := strings.Cut(strings.TrimPrefix(inCommit, "/data/commands/"), "/data")
	n, err := strconv.Atoi(number)
	n -= a.before
	if setting, is := strings.CutPrefix(rest, "/settings"); is && (strings.HasPrefix(setting, "/tools") || setting == "/instructions") {
		return setting
	}
	if err != nil || n < 0 || n >= len(a.begins) {
		return a.path
	}
	if field, is := strings.CutPrefix(rest, "/item/"); is { // of the command that also asks the agent
		return a.path + "/" + strconv.Itoa(a.begins[n]) + "/" + field
	}
	if list, is := strings.CutPrefix(rest, "/items/"); is {
		place, field, more := strings.Cut(list, "/")
		if of, err := strconv.Atoi(place); err == nil {
			if more {
				field = "/" + field
			}
			return a.path + "/" + strconv.Itoa(a.begins[n]+of) + field
		}
	}
	return a.path
}
