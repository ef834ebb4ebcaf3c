package server

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime/model"
	"github.com/skein-threads/skein/runtime/model/chat"
	"github.com/skein-threads/skein/runtime/model/messages"
	"github.com/skein-threads/skein/runtime/model/responses"
)

// modelEndpoint is an endpoint of models before it is made.
type modelEndpoint struct {
	name    string
	codec   model.Codec
	config  model.Config
	tenants []string
}

// codecOf returns the codec of a protocol, nil if there is none.
func codecOf(protocol string) model.Codec {
	switch protocol {
	case "responses":
		return responses.Codec{}
	case "chat":
		return chat.Codec{}
	case "messages":
		return messages.Codec{}
	}
	return nil
}

// checkModels reports what is wrong with the endpoints, whatever the environment says.
func (c Config) checkModels() error {
	if _, err := responses.New(c.modelConfig(model.Config{})); err != nil {
		return err
	}
	_, err := c.modelEndpoints(nil, zerolog.Nop())
	return err
}

// modelConfig returns a configuration of an endpoint with what flags set for all of them.
func (c Config) modelConfig(of model.Config) model.Config {
	of.Params, of.Idle, of.Timeout, of.Attempts = c.ModelParams, c.ModelIdle, c.ModelTimeout, c.ModelAttempts
	return of
}

// modelEndpoints returns the reactor over the endpoints of models: those that flags declare, and
// openai and anthropic where the environment names them. Without getenv the flags alone are read.
func (c Config) modelEndpoints(getenv func(string) string, logger zerolog.Logger) (*model.Endpoints, error) {
	var list []*modelEndpoint
	keyless := getenv == nil
	if keyless {
		getenv = func(string) string { return "" }
	}
	for _, text := range c.ModelEndpoints {
		e, variable, err := parseModelEndpoint(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(o *modelEndpoint) bool { return o.name == e.name }) {
			return nil, fmt.Errorf("--model-endpoint: %q is declared twice", e.name)
		}
		if variable != "" && !keyless {
			if e.config.APIKey = getenv(variable); e.config.APIKey == "" {
				return nil, fmt.Errorf("--model-endpoint %s: the environment variable %.64q of its key is empty or not set; set it, or leave it out if the endpoint needs no key", e.name, variable)
			}
		}
		list = append(list, e)
	}
	for _, e := range []*modelEndpoint{
		{name: OpenAIReactor, codec: responses.Codec{}, config: responses.FromEnv(getenv)},
		{name: "anthropic", codec: messages.Codec{}, config: model.Config{BaseURL: getenv("ANTHROPIC_BASE_URL"), APIKey: getenv("ANTHROPIC_API_KEY")}},
	} {
		if e.config.BaseURL+e.config.APIKey != "" && !slices.ContainsFunc(list, func(o *modelEndpoint) bool { return o.name == e.name }) {
			list = append(list, e)
		}
	}
	for _, e := range list {
		e.config = c.modelConfig(e.config)
		e.config.Provider, e.config.Logger = e.name, logger
	}
	for _, text := range c.ModelEndpointOptions {
		if err := setModelOption(list, text); err != nil {
			return nil, fmt.Errorf("--model-endpoint-option: %w", err)
		}
	}
	var made []model.Endpoint
	for _, e := range list {
		r, err := model.New(e.config, e.codec)
		if err != nil {
			return nil, fmt.Errorf("the endpoint %s of models: %w", e.name, err)
		}
		made = append(made, model.Endpoint{Name: e.name, Reactor: r, Tenants: e.tenants})
	}
	return model.NewEndpoints(made, OpenAIReactor), nil
}

// parseModelEndpoint parses NAME=PROTOCOL,URL[,KEY_VARIABLE].
func parseModelEndpoint(text string) (e *modelEndpoint, variable string, err error) {
	name, rest, _ := strings.Cut(text, "=")
	fields := strings.Split(rest, ",")
	if !events.Pattern(events.PatternName).MatchString(name) || len(fields) < 2 || len(fields) > 3 {
		return nil, "", errors.New("--model-endpoint is NAME=PROTOCOL,URL[,KEY_VARIABLE], such as local=chat,http://localhost:11434/v1")
	}
	e = &modelEndpoint{name: name, codec: codecOf(fields[0]), config: model.Config{BaseURL: fields[1], Origin: "--model-endpoint " + name}}
	if e.codec == nil {
		return nil, "", fmt.Errorf("--model-endpoint %s: the protocol %.64q is none of responses, chat and messages", name, fields[0])
	}
	if len(fields) == 3 {
		variable = fields[2]
	}
	return e, variable, nil
}

// setModelOption sets NAME.KEY=VALUE.
func setModelOption(list []*modelEndpoint, text string) error {
	path, value, ok := strings.Cut(text, "=")
	dot := strings.LastIndexByte(path, '.')
	if !ok || dot < 0 {
		return fmt.Errorf("%.64q is not NAME.KEY=VALUE", text)
	}
	name, key := path[:dot], path[dot+1:]
	at := slices.IndexFunc(list, func(e *modelEndpoint) bool { return e.name == name })
	if at < 0 {
		if name == OpenAIReactor || name == "anthropic" { // its key is not set
			list, at = []*modelEndpoint{{}}, 0
		} else {
			return fmt.Errorf("there is no endpoint %.64q", name)
		}
	}
	e := list[at]
	var err error
	switch key {
	case "timeout":
		e.config.Timeout, err = time.ParseDuration(value)
	case "idle":
		e.config.Idle, err = time.ParseDuration(value)
	case "attempts":
		e.config.Attempts, err = strconv.Atoi(value)
	case "maxBytes":
		e.config.MaxBytes, err = strconv.ParseInt(value, 10, 64)
	case "rawReasoning":
		e.config.RawReasoning, err = strconv.ParseBool(value)
	case "tenants":
		for tenant := range strings.SplitSeq(value, ",") {
			if !events.ValidTenant(tenant) {
				err = cmp.Or(err, fmt.Errorf("%.64q is not a tenant", tenant))
			}
			e.tenants = append(e.tenants, tenant)
		}
	default:
		return fmt.Errorf("%.64q is none of timeout, idle, attempts, maxBytes, rawReasoning and tenants", key)
	}
	if err != nil {
		return fmt.Errorf("%s.%s: %w", name, key, err)
	}
	c := e.config
	if map[string]bool{"timeout": c.Timeout == 0, "idle": c.Idle == 0, "attempts": c.Attempts == 0, "maxBytes": c.MaxBytes == 0}[key] {
		return fmt.Errorf("%s.%s is %.64q, which limits nothing; write 1 or more, or leave the option out for the default", name, key, value)
	}
	return nil
}
