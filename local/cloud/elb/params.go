package elb

import (
	"strconv"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

// required returns a parameter that must be there.
func required(p core.Params, name, at string) (string, error) {
	if v := p.Get(name); v != "" {
		return v, nil
	}
	return "", core.Errorf("ValidationError", "1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", at)
}

func text(p core.Params, name string) *string {
	if !p.Has(name) {
		return nil
	}
	v := p.Get(name)
	return &v
}

func tags(p core.Params) []state.Tag {
	var out []state.Tag
	for _, m := range p.Members("Tags") {
		out = append(out, state.Tag{Key: m.Get("Key"), Value: m.Get("Value")})
	}
	return out
}

func tagShapes(all []state.Tag) core.List[tagShape] {
	out := make([]tagShape, len(all))
	for i, t := range all {
		out[i] = tagShape(t)
	}
	return core.ListOf(out)
}

func attributes(p core.Params) []state.Attribute {
	var out []state.Attribute
	for _, m := range p.Members("Attributes") {
		out = append(out, state.Attribute{Key: m.Get("Key"), Value: m.Get("Value")})
	}
	return out
}

func attributeShapes(all []state.Attribute) core.List[attributeShape] {
	out := make([]attributeShape, len(all))
	for i, a := range all {
		out[i] = attributeShape(a)
	}
	return core.ListOf(out)
}

// describeLimit is how many resources can be asked for by name in one call.
const describeLimit = 20

func checkDescribed(what string, lists ...[]string) error {
	given := 0
	for _, l := range lists {
		if len(l) > describeLimit {
			return core.Errorf("ValidationError", "You cannot describe more than '%d' %s at a time", describeLimit, what)
		}
		if len(l) > 0 {
			given++
		}
	}
	if given > 1 {
		return core.Errorf("ValidationError", "You can specify only one of the ways to select %s", what)
	}
	return nil
}

// page cuts a page out of all, which is sorted by name, as Marker and PageSize
// of the call say.
func page[T any](p core.Params, all []T, name func(T) string) ([]T, string, error) {
	if n, err := p.Int("PageSize"); err != nil || n != nil && (*n < 1 || *n > 400) {
		return nil, "", core.Errorf("ValidationError", "1 validation error detected: Value '%s' at 'pageSize' failed to satisfy constraint: Member must have value from 1 to 400", p.Get("PageSize"))
	}
	names := make([]string, len(all))
	byName := make(map[string]T, len(all))
	for i, one := range all {
		names[i] = name(one)
		byName[names[i]] = one
	}
	cut, next, err := core.Page(names, p.Get("PageSize"), 400, p.Get("Marker"))
	if err != nil {
		return nil, "", core.Errorf("ValidationError", "The specified marker '%s' is not valid", p.Get("Marker"))
	}
	out := make([]T, len(cut))
	for i, n := range cut {
		out[i] = byName[n]
	}
	return out, next, nil
}

func flag(p core.Params, name string) (*bool, error) {
	if !p.Has(name) {
		return nil, nil
	}
	v, err := strconv.ParseBool(p.Get(name))
	if err != nil {
		return nil, core.Errorf("ValidationError", "'%s' is not a valid value for %s: want true or false", p.Get(name), name)
	}
	return &v, nil
}
