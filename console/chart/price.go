package chart

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/events"
)

// perTokens is how many tokens a price is for.
const perTokens = 1_000_000

// Prices knows what models cost. The zero value knows none.
type Prices struct{ list []price }

// price is what a million tokens of a model cost.
type price struct {
	model           string
	begins          bool // model is the beginning of names
	in, out, cached float64
}

// ParsePrices parses prices of models, each MODEL=INPUT/OUTPUT or MODEL=INPUT/OUTPUT/CACHED: what
// a million tokens cost. A MODEL that ends with * matches every name that begins so; the longest that
// fits counts.
func ParsePrices(texts []string) (Prices, error) {
	var p Prices
	for _, text := range texts {
		one, err := parsePrice(text)
		if err != nil {
			return Prices{}, fmt.Errorf("%.100q: %w; write MODEL=INPUT/OUTPUT, such as gpt-5-mini*=0.25/2", text, err)
		}
		if slices.ContainsFunc(p.list, func(other price) bool { return other.model == one.model && other.begins == one.begins }) {
			return Prices{}, fmt.Errorf("%.100q: its model has a price already; give one price a model", text)
		}
		p.list = append(p.list, one)
	}
	slices.SortStableFunc(p.list, func(a, b price) int { // an exact name before all others
		if a.begins != b.begins {
			return map[bool]int{true: 1, false: -1}[a.begins]
		}
		return len(b.model) - len(a.model)
	})
	return p, nil
}

func parsePrice(text string) (price, error) {
	at := strings.LastIndex(text, "=")
	if at < 1 {
		return price{}, errors.New("it names no model")
	}
	var p price
	p.model, p.begins = strings.CutSuffix(text[:at], "*")
	parts := strings.Split(text[at+1:], "/")
	if len(parts) != 2 && len(parts) != 3 {
		return price{}, errors.New("it has no two or three prices")
	}
	var numbers [3]float64
	for i, part := range parts {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil || v < 0 || v > 1e9 || math.IsNaN(v) {
			return price{}, fmt.Errorf("%.40q is no price", part)
		}
		numbers[i] = v
	}
	if len(parts) == 2 {
		numbers[2] = numbers[0]
	}
	p.in, p.out, p.cached = numbers[0], numbers[1], numbers[2]
	return p, nil
}

// None reports whether no price is known.
func (p Prices) None() bool { return len(p.list) == 0 }

// of returns what a model used costs, and whether its price is known.
func (p Prices) of(u events.Usage) (float64, bool) {
	for _, one := range p.list {
		if u.Model != one.model && !(one.begins && strings.HasPrefix(u.Model, one.model)) {
			continue
		}
		cached := min(max(u.CachedTokens, 0), u.InputTokens)
		return (float64(u.InputTokens-cached)*one.in + float64(cached)*one.cached + float64(u.OutputTokens)*one.out) / perTokens, true
	}
	return 0, false
}

// Cost returns what models used costs, as text; empty if nothing was used, or the price of one of
// them is not known.
func (p Prices) Cost(used ...events.Usage) string {
	sum, any := 0.0, false
	for _, u := range used {
		if tokens(u) == 0 {
			continue
		}
		cost, known := p.of(u)
		if !known {
			return ""
		}
		sum, any = sum+cost, true
	}
	switch {
	case !any:
		return ""
	case sum > 0 && sum < 0.0001:
		return "< 0.0001"
	case sum < 1:
		return strconv.FormatFloat(sum, 'f', 4, 64)
	}
	return strconv.FormatFloat(sum, 'f', 2, 64)
}
