package eventpattern

import (
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// The oracle is a second matcher, slow and obvious: it reads JSON with
// encoding/json, joins every path, keeps array elements in maps and tries every
// combination of values. It takes patterns that Parse has accepted.

// tree is a JSON value. Objects keep the order of keys, and keys that occur twice.
type tree struct {
	kind rune // o, a, s, n, t, f, 0 (null)
	text string
	keys []string
	kids []*tree
}

func readTree(text string) (*tree, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return readTreeFrom(d)
}

func readTreeFrom(d *json.Decoder) (*tree, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case string:
		return &tree{kind: 's', text: v}, nil
	case json.Number:
		return &tree{kind: 'n', text: v.String()}, nil
	case bool:
		return &tree{kind: map[bool]rune{true: 't', false: 'f'}[v]}, nil
	case nil:
		return &tree{kind: '0'}, nil
	}
	t := &tree{kind: map[json.Token]rune{json.Delim('{'): 'o', json.Delim('['): 'a'}[token]}
	for d.More() {
		if t.kind == 'o' {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			t.keys = append(t.keys, key.(string))
		}
		kid, err := readTreeFrom(d)
		if err != nil {
			return nil, err
		}
		t.kids = append(t.kids, kid)
	}
	_, err = d.Token()
	return t, err
}

// conjunctions is the pattern without $or: for each combination of branches the
// alternatives by path, those written last.
func conjunctions(pattern *tree, prefix []string, so []map[string]*tree) []map[string]*tree {
	for i, key := range pattern.keys {
		v := pattern.kids[i]
		switch {
		case key == "$or":
			var all []map[string]*tree
			for _, branch := range v.kids {
				var copies []map[string]*tree
				for _, m := range so {
					c := map[string]*tree{}
					for k, v := range m {
						c[k] = v
					}
					copies = append(copies, c)
				}
				all = append(all, conjunctions(branch, prefix, copies)...)
			}
			so = all
		case v.kind == 'o':
			so = conjunctions(v, append(slices.Clone(prefix), key), so)
		default:
			for _, m := range so {
				m[strings.Join(append(slices.Clone(prefix), key), ".")] = v
			}
		}
	}
	return so
}

type oracleField struct {
	value *tree
	where map[*tree]int // array -> index of the element that the value lies in
}

func oracleFields(t *tree, path string, top bool, where map[*tree]int, out map[string][]oracleField) {
	switch t.kind {
	case 'o':
		for i, key := range t.keys {
			p := path + "." + key
			if top {
				p = key
			}
			oracleFields(t.kids[i], p, false, where, out)
		}
	case 'a':
		for i, kid := range t.kids {
			if kid.kind != 'o' && kid.kind != 'a' {
				out[path] = append(out[path], oracleField{kid, where})
				continue
			}
			in := map[*tree]int{t: i}
			for k, v := range where {
				in[k] = v
			}
			oracleFields(kid, path, false, in, out)
		}
	default:
		out[path] = append(out[path], oracleField{t, where})
	}
}

var errTooSlow = errors.New("the oracle gave up")

// oracle decides whether a pattern matches an event.
func oracle(pattern, event string) (bool, error) {
	p, err := readTree(pattern)
	if err != nil {
		return false, err
	}
	e, err := readTree(event)
	if err != nil {
		return false, err
	}
	fields := map[string][]oracleField{}
	oracleFields(e, "", true, nil, fields)
	steps := 200_000
	for _, c := range conjunctions(p, nil, []map[string]*tree{{}}) {
		var paths []string
		for path := range c {
			paths = append(paths, path)
		}
		slices.SortFunc(paths, func(a, b string) int {
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		})
		if combine(c, paths, fields, map[*tree]int{}, &steps) {
			return true, nil
		}
		if steps < 0 {
			return false, errTooSlow
		}
	}
	return false, nil
}

// combine tries every value for every path, with where the ones chosen before lie.
func combine(c map[string]*tree, paths []string, fields map[string][]oracleField, chosen map[*tree]int, steps *int) bool {
	if *steps--; *steps < 0 {
		return false
	}
	if len(paths) == 0 {
		return true
	}
	absent := true
	for _, f := range fields[paths[0]] {
		if agree(f.where, chosen) {
			absent = false
			break
		}
	}
	for _, alternative := range c[paths[0]].kids {
		if alternative.kind == 'o' && alternative.keys[0] == "exists" && alternative.kids[0].kind == 'f' {
			if absent && combine(c, paths[1:], fields, chosen, steps) {
				return true
			}
			continue
		}
		for _, f := range fields[paths[0]] {
			if !agree(f.where, chosen) || !oracleValue(alternative, f.value) {
				continue
			}
			next := map[*tree]int{}
			for _, m := range []map[*tree]int{chosen, f.where} {
				for k, v := range m {
					next[k] = v
				}
			}
			if combine(c, paths[1:], fields, next, steps) {
				return true
			}
		}
	}
	return false
}

func agree(a, b map[*tree]int) bool {
	for k, v := range a {
		if w, ok := b[k]; ok && w != v {
			return false
		}
	}
	return true
}

func oracleValue(want, got *tree) bool {
	if want.kind != 'o' {
		return oracleExact(want, got)
	}
	operand, isString := want.kids[0], got.kind == 's'
	switch want.keys[0] {
	case "exactly":
		return isString && got.text == operand.text
	case "exists":
		return true
	case "anything-but":
		return oracleAnythingBut(operand, got)
	case "numeric":
		return oracleNumeric(operand, got)
	case "cidr":
		return isString && oracleCIDR(operand.text, got.text)
	}
	return isString && oracleText(want.keys[0], operand, got.text)
}

// oracleText applies an operator on strings.
func oracleText(operator string, operand *tree, text string) bool {
	fold := operator == "equals-ignore-case"
	if operand.kind == 'o' { // {"prefix":{"equals-ignore-case":…}}
		fold, operand = true, operand.kids[0]
	}
	if operator == "wildcard" {
		return oracleWildcard(operand.text).MatchString(text)
	}
	quote := regexp.QuoteMeta(operand.text)
	if fold {
		quote = ""
		for _, r := range operand.text {
			if r > 0xffff {
				return false
			}
			quote += "(" + regexp.QuoteMeta(upperForm(r)) + "|" + regexp.QuoteMeta(lowerForm(r)) + ")"
		}
	}
	switch operator {
	case "prefix":
		return regexp.MustCompile(`(?s)^` + quote).MatchString(text)
	case "suffix":
		return regexp.MustCompile(`(?s)` + quote + `$`).MatchString(text)
	}
	return regexp.MustCompile(`(?s)^` + quote + `$`).MatchString(text)
}

func oracleWildcard(text string) *regexp.Regexp {
	out := ""
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '*':
			out += ".*"
			continue
		case '\\':
			i++
		}
		if text[i] < 0x80 {
			out += regexp.QuoteMeta(text[i : i+1])
		} else {
			out += text[i : i+1]
		}
	}
	return regexp.MustCompile(`(?s)^` + out + `$`)
}

func oracleExact(want, got *tree) bool {
	if want.kind != got.kind {
		return false
	}
	switch want.kind {
	case 'n':
		a, b := oracleNumber(want.text), oracleNumber(got.text)
		return want.text == got.text || a != nil && b != nil && a.Cmp(b) == 0
	case 's':
		a, b := oracleAddress(want.text), oracleAddress(got.text)
		return want.text == got.text && !a.IsValid() || a.IsValid() && a == b
	}
	return true
}

func oracleAnythingBut(operand, got *tree) bool {
	if operand.kind == 'o' {
		for _, o := range operand.kids[0].list() {
			if got.kind == 's' && oracleText(operand.keys[0], o, got.text) {
				return false
			}
		}
		return true
	}
	for _, o := range operand.list() {
		if o.kind == 's' && got.kind == 's' && o.text == got.text {
			return false
		}
		if o.kind == 'n' && got.kind == 'n' {
			if b := oracleNumber(got.text); b != nil && oracleNumber(o.text).Cmp(b) == 0 {
				return false
			}
		}
	}
	return true
}

// list is the elements of an array, or the value itself.
func (t *tree) list() []*tree {
	if t.kind == 'a' {
		return t.kids
	}
	return []*tree{t}
}

func oracleNumeric(operand, got *tree) bool {
	if got.kind != 'n' {
		return false
	}
	v := oracleNumber(got.text)
	if v == nil {
		return false
	}
	for i := 0; i < len(operand.kids); i += 2 {
		c := v.Cmp(oracleNumber(operand.kids[i+1].text))
		ok := map[string]bool{"=": c == 0, "<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0}[operand.kids[i].text]
		if !ok {
			return false
		}
	}
	return true
}

// oracleNumber is the value of a number, or nil where that is not the short
// decimal form of a double.
func oracleNumber(text string) *big.Rat {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if n, err := strconv.Atoi(text[i+1:]); err != nil || n > 5000 || n < -5000 {
			if strings.Trim(text[:i], "-0.") == "" && err == nil {
				return new(big.Rat)
			}
			return nil
		}
	}
	given, ok := new(big.Rat).SetString(text)
	short, ok2 := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	if !ok || !ok2 || given.Cmp(short) != 0 {
		return nil
	}
	return given
}

// oracleAddress reads the common spellings of an address.
func oracleAddress(text string) netip.Addr {
	if !regexp.MustCompile(`^([0-9]+\.[0-9]+\.[0-9]+\.[0-9]+|[0-9a-fA-F:]*:[0-9a-fA-F:]*)$`).MatchString(text) {
		return netip.Addr{}
	}
	if strings.Contains(text, ".") {
		if len(text) > 15 {
			return netip.Addr{}
		}
		parts := strings.Split(text, ".")
		for i, p := range parts {
			if parts[i] = strings.TrimLeft(p, "0"); parts[i] == "" {
				parts[i] = "0"
			}
		}
		text = strings.Join(parts, ".")
	} else {
		text = regexp.MustCompile(`0+([0-9a-fA-F]{4})`).ReplaceAllString(text, "$1")
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap()
}

func oracleCIDR(block, text string) bool {
	ip, length, _ := strings.Cut(strings.TrimRight(block, "/"), "/")
	n, _ := strconv.Atoi(length)
	a := oracleAddress(text)
	return a.IsValid() && netip.PrefixFrom(oracleAddress(ip), n).Contains(a)
}
