package a2a

import (
	"cmp"
	"context"
	"slices"

	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// pushConfig says where a client is told of a task. The fields of 0.3 are those of config.
type pushConfig struct {
	TaskID string `json:"taskId,omitzero"`
	pushFields
	Config *pushFields `json:"pushNotificationConfig,omitzero"` // of 0.3
}

type pushFields struct {
	ID             string    `json:"id,omitzero"`
	URL            string    `json:"url,omitzero"`
	Token          string    `json:"token,omitzero"`
	Authentication *pushAuth `json:"authentication,omitzero"`
}

// pushAuth is how the receiver knows the sender.
type pushAuth struct {
	Scheme      string   `json:"scheme,omitzero"`
	Schemes     []string `json:"schemes,omitempty"` // of 0.3
	Credentials string   `json:"credentials,omitzero"`
}

// scheme returns the scheme of the header Authorization.
func (a *pushAuth) scheme() string {
	if a == nil || a.Scheme == "" && len(a.Schemes) == 0 {
		return ""
	}
	return cmp.Or(a.Scheme, slices.Concat(a.Schemes, []string{""})[0])
}

// check refuses a configuration that is wrong in itself. at is the path of its fields.
func (p *pushFields) check(at string) error {
	switch {
	case p.URL == "":
		return events.Invalid(at+"/url", "a push notification has a url to be sent to")
	case len(p.ID) > 128:
		return events.Invalid(at+"/id", "the id of a configuration has at most 128 bytes")
	}
	return nil
}

// checkPush refuses the configuration of a message that is wrong in itself, and keeps that of 0.3 where
// that of 1.0 is.
func (in *sendRequest) checkPush() error {
	conf, at := &in.Configuration, "/configuration/taskPushNotificationConfig"
	if conf.Push == nil && conf.OldPush != nil {
		conf.Push, at = conf.OldPush, "/configuration/pushNotificationConfig"
	}
	if conf.Push == nil {
		return nil
	}
	return conf.Push.check(at)
}

// pushTo stores where the client of a message is told of its task.
func (f *run) pushTo(ctx context.Context, p *pushFields) error {
	if p == nil {
		return nil
	}
	from := f.seq
	if from == 0 { // the message was sent before
		x, err := runstream.FindIn(ctx, f.now, f.execution, f.thread)
		if err != nil {
			return err
		}
		from = x.Seq
	}
	return f.o.storePush(ctx, f.now, f.thread, f.execution, p, from, "/configuration")
}

// readPush decodes the parameters of an operation on configurations: those of 1.0 name the task taskId
// and the configuration id, those of 0.3 id and pushNotificationConfigId.
func (o *operation) readPush() (task, id string, err error) {
	var in struct {
		TaskID string `json:"taskId"`
		ID     string `json:"id"`
		OldID  string `json:"pushNotificationConfigId"`
	}
	if err := decode(o.params, &in); err != nil {
		return "", "", err
	}
	if o.version == v0 {
		in.TaskID, in.ID = in.ID, in.OldID
	}
	if in.TaskID == "" {
		return "", "", events.Invalid("/taskId", "the id of a task is needed")
	}
	return in.TaskID, in.ID, nil
}

// setPush stores where the client is told of a task.
func (o *operation) setPush() error {
	var in pushConfig
	if err := decode(o.params, &in); err != nil {
		return err
	}
	fields, at := &in.pushFields, ""
	if o.version == v0 {
		if fields, at = in.Config, "/pushNotificationConfig"; fields == nil {
			return events.Invalid(at, "a configuration is needed")
		}
	}
	if in.TaskID == "" {
		return events.Invalid("/taskId", "the id of a task is needed")
	}
	if err := fields.check(at); err != nil {
		return err
	}
	ctx := o.r.Context()
	now, x, _, err := o.find(ctx, in.TaskID)
	if err != nil {
		return err
	}
	if err := o.storePush(ctx, now, x.ThreadID, x.ID, fields, x.Seq, at); err != nil {
		return err
	}
	o.result(o.w, o.version.push(x.ID, *fields))
	return nil
}

// storePush stores where the client is told of what happens from a sequence of the log.
func (o *operation) storePush(ctx context.Context, now *client.Client, thread, execution string, p *pushFields, from int64, at string) error {
	if p.ID == "" {
		p.ID = execution // clients of 0.3 without an id have one configuration
		if o.version == v1 {
			p.ID = o.c.Keyed("/a2a/push\x00" + p.URL).String()
		}
	}
	d := events.SetPush{
		ID: o.pushID(execution, p.ID), ExecutionID: execution, Form: events.PushA2A, Name: p.ID, Owner: o.pushOwner(),
		URL: p.URL, Token: p.Token, Scheme: p.Authentication.scheme(), Base: string(o.site()), FromSeq: from,
	}
	if p.Authentication != nil {
		d.Credentials = p.Authentication.Credentials
	}
	if o.version == v0 {
		d.Form = events.PushA2A0
	}
	_, err := now.Send(ctx, thread, d)
	return events.AtField(err, func(inData string) string { return at + "/" + inData })
}

// pushID returns the id of a configuration: another client's with the same name is another one.
func (o *operation) pushID(execution, name string) string {
	return o.c.Keyed("/a2a/push\x00" + execution + "\x00" + name).String()
}

// pushOwner names the client, to itself alone.
func (o *operation) pushOwner() string { return o.c.Keyed("/a2a/push").String() }

// pushes returns the client's configurations of a task, and the task's thread.
func (o *operation) pushes(ctx context.Context, id string) (now *client.Client, thread string, list []any, names []string, err error) {
	now, x, _, err := o.find(ctx, id)
	if err != nil {
		return nil, "", nil, nil, err
	}
	all, err := client.Read(ctx, now, events.ListPushes{ThreadID: x.ThreadID, ExecutionID: x.ID})
	if err != nil {
		return nil, "", nil, nil, err
	}
	list = []any{}
	for _, p := range all.Pushes {
		if p.Owner != o.pushOwner() {
			continue
		}
		fields := pushFields{ID: p.Name, URL: p.URL}
		if p.Scheme != "" {
			fields.Authentication = &pushAuth{Scheme: p.Scheme}
		}
		list, names = append(list, o.version.push(x.ID, fields)), append(names, p.Name)
	}
	return now, x.ThreadID, list, names, nil
}

// getPush answers with a configuration, without its secrets.
func (o *operation) getPush() error {
	id, name, err := o.readPush()
	if err != nil {
		return err
	}
	_, _, list, names, err := o.pushes(o.r.Context(), id)
	if err != nil {
		return err
	}
	i := slices.Index(names, name)
	if name == "" && o.version == v0 && len(list) > 0 { // the task's only one, of clients that know no ids
		i = 0
	}
	if i < 0 {
		return noPush(id, name)
	}
	o.result(o.w, list[i])
	return nil
}

// listPushes answers with the client's configurations of a task.
func (o *operation) listPushes() error {
	id, _, err := o.readPush()
	if err != nil {
		return err
	}
	_, _, list, _, err := o.pushes(o.r.Context(), id)
	if err != nil {
		return err
	}
	if o.version == v0 {
		o.result(o.w, list)
		return nil
	}
	o.result(o.w, struct {
		Configs   []any  `json:"configs"`
		NextToken string `json:"nextPageToken"`
	}{list, ""})
	return nil
}

// deletePush removes a configuration, if there is one.
func (o *operation) deletePush() error {
	id, name, err := o.readPush()
	if err != nil {
		return err
	}
	ctx := o.r.Context()
	now, x, _, err := o.find(ctx, id)
	if err != nil {
		return err
	}
	if _, err := now.Send(ctx, x.ThreadID, events.DeletePush{ID: o.pushID(x.ID, name)}); err != nil {
		return err
	}
	if o.version == v0 {
		o.result(o.w, events.JSON("null"))
		return nil
	}
	o.result(o.w, struct{}{})
	return nil
}

// push returns a configuration in a version.
func (v version) push(task string, p pushFields) any {
	auth := pushAuth{}
	if p.Authentication != nil {
		auth = *p.Authentication
	}
	if v == v1 {
		if p.Authentication != nil {
			p.Authentication = &pushAuth{Scheme: p.Authentication.scheme(), Credentials: auth.Credentials}
		}
		return pushConfig{TaskID: task, pushFields: p}
	}
	if p.Authentication != nil {
		p.Authentication = &pushAuth{Schemes: []string{p.Authentication.scheme()}, Credentials: auth.Credentials}
	}
	return pushConfig{TaskID: task, Config: &p}
}
