package core

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Params is the form of a query protocol request. Structures and lists are
// flattened into names: Targets.member.1.Id.
type Params url.Values

// Get returns the value of name, empty if it is absent.
func (p Params) Get(name string) string { return url.Values(p).Get(name) }

// Has says whether name, or any part of a structure or list of that name, is there.
func (p Params) Has(name string) bool {
	if url.Values(p).Has(name) {
		return true
	}
	for k := range p {
		if strings.HasPrefix(k, name+".") {
			return true
		}
	}
	return false
}

// Int returns the number at name; nil if it is absent.
func (p Params) Int(name string) (*int32, error) {
	if !url.Values(p).Has(name) {
		return nil, nil
	}
	n, err := strconv.ParseInt(p.Get(name), 10, 32)
	if err != nil {
		return nil, Errorf("ValidationError", "%q is not a valid number for %s", p.Get(name), name)
	}
	v := int32(n)
	return &v, nil
}

// Struct returns the members of the structure at name.
func (p Params) Struct(name string) Params {
	out := Params{}
	for k, v := range p {
		if rest, ok := strings.CutPrefix(k, name+"."); ok {
			out[rest] = v
		}
	}
	return out
}

// Members returns the structures of the list at name, in order.
func (p Params) Members(name string) []Params {
	byIndex := map[int]Params{}
	for k, v := range p {
		rest, ok := strings.CutPrefix(k, name+".member.")
		if !ok {
			continue
		}
		index, field, _ := strings.Cut(rest, ".")
		n, err := strconv.Atoi(index)
		if err != nil {
			continue
		}
		if byIndex[n] == nil {
			byIndex[n] = Params{}
		}
		byIndex[n][field] = v // a list of plain values has the field ""
	}
	order := make([]int, 0, len(byIndex))
	for n := range byIndex {
		order = append(order, n)
	}
	slices.Sort(order)
	out := make([]Params, len(order))
	for i, n := range order {
		out[i] = byIndex[n]
	}
	return out
}

// Strings returns the plain values of the list at name, in order.
func (p Params) Strings(name string) []string {
	var out []string
	for _, m := range p.Members(name) {
		out = append(out, m.Get(""))
	}
	return out
}
