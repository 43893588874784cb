package eventpattern

import (
	"math/bits"
	"strconv"
	"strings"
)

// address is an IP address. The families are kept apart: an IPv4 address or
// block never equals or holds an IPv6 one.
type address struct {
	hi, lo uint64
	v4     bool // in the low 32 bits of lo
}

// exactAddress is a plain string that is an IP address: other spellings of the
// same address match too.
type exactAddress struct{ address address }

func (t exactAddress) passes(f *field) bool {
	if f.kind != kindString {
		return false
	}
	a, ok := parseAddress(f.text)
	return ok && a == t.address
}

// cidr is an address block. mask has a bit for each that must be equal.
type cidr struct{ base, mask address }

func (t cidr) passes(f *field) bool {
	if f.kind != kindString {
		return false
	}
	a, ok := parseAddress(f.text)
	return ok && a.v4 == t.base.v4 && (a.hi^t.base.hi)&t.mask.hi == 0 && (a.lo^t.base.lo)&t.mask.lo == 0
}

func (p *parser) cidr() (test, error) {
	text, err := p.stringOperand()
	if err != nil {
		return nil, err
	}
	ip, length, ok := strings.Cut(strings.TrimRight(text, "/"), "/")
	if !ok || strings.Contains(length, "/") {
		return nil, p.fail("%q is no address block: use one address and one length, as in 10.0.0.0/8 or fd00::/64", clip(text))
	}
	a, ok := parseAddress(ip)
	if !ok {
		return nil, p.fail("%q is no IP address", clip(ip))
	}
	most := 127
	if a.v4 {
		most = 31
	}
	n, err := strconv.ParseInt(length, 10, 32)
	if err != nil || n < 0 || int(n) > most {
		return nil, p.fail("prefix length %q: use 0 to %d (a plain string matches a single address)", clip(length), most)
	}
	t := cidr{base: a, mask: prefixMask(int(n), a.v4)}
	return t, nil
}

func prefixMask(n int, v4 bool) address {
	if v4 {
		n += 96
	}
	ones := func(n int) uint64 { // n leading ones
		if n <= 0 {
			return 0
		}
		return ^uint64(0) << (64 - min(n, 64))
	}
	m := address{hi: ones(n), lo: ones(n - 64), v4: v4}
	return m
}

// parseAddress reads an IP address in the spellings that the service's matcher
// takes: leading zeros in IPv4 are decimal, and an IPv4-mapped IPv6 address in
// hex is an IPv4 address. IPv6 with a dotted tail or a zone is none.
func parseAddress(s string) (address, bool) {
	if len(s) < 2 || len(s) > 64 {
		return address{}, false
	}
	dots, colons := 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
		case c == '.':
			dots++
		case c == ':':
			colons++
		case 'a' <= c|0x20 && c|0x20 <= 'f' && dots == 0:
		default:
			return address{}, false
		}
	}
	switch {
	case dots == 3 && colons == 0:
		return parseIPv4(s)
	case dots == 0 && colons >= 2:
		return parseIPv6(s)
	}
	return address{}, false
}

func parseIPv4(s string) (address, bool) {
	if len(s) > len("255.255.255.255") {
		return address{}, false
	}
	var v, part uint64
	digits := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != '.' {
			if s[i] > '9' {
				return address{}, false
			}
			part = part*10 + uint64(s[i]-'0')
			digits++
			continue
		}
		if digits == 0 || part > 255 {
			return address{}, false
		}
		v, part, digits = v<<8|part, 0, 0
	}
	return address{lo: v, v4: true}, true
}

func parseIPv6(s string) (address, bool) {
	var groups [8]uint64
	n, gap := 0, -1 // groups read; where :: stands
	i := 0
	if s[0] == ':' {
		if s[1] != ':' {
			return address{}, false
		}
		gap, i = 0, 2
	}
	for i < len(s) {
		v, digits := uint64(0), 0
		for ; i < len(s) && s[i] != ':'; i++ {
			c := s[i] - '0'
			if c > 9 {
				c = (s[i] | 0x20) - 'a' + 10
			}
			if v, digits = v<<4|uint64(c), digits+1; v > 0xffff {
				return address{}, false
			}
		}
		if digits == 0 || n == 8 {
			return address{}, false
		}
		groups[n] = v
		n++
		if i == len(s) {
			break
		}
		if i++; i == len(s) {
			return address{}, false // a single colon at the end
		}
		if s[i] == ':' {
			if gap >= 0 {
				return address{}, false
			}
			gap = n
			i++
		}
	}
	if gap >= 0 {
		if n == 8 {
			return address{}, false
		}
		copy(groups[8-(n-gap):], groups[gap:n])
		clear(groups[gap : 8-(n-gap)])
	} else if n != 8 {
		return address{}, false
	}
	a := address{
		hi: groups[0]<<48 | groups[1]<<32 | groups[2]<<16 | groups[3],
		lo: groups[4]<<48 | groups[5]<<32 | groups[6]<<16 | groups[7],
	}
	if a.hi == 0 && bits.LeadingZeros64(a.lo) == 16 && a.lo>>32 == 0xffff {
		return address{lo: a.lo & 0xffffffff, v4: true}, true
	}
	return a, true
}
