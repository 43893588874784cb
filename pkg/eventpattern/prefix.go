package eventpattern

import "strings"

type prefix struct{ text string }

func (t prefix) passes(f *field) bool {
	return f.kind == kindString && strings.HasPrefix(f.text, t.text)
}

type prefixIgnoreCase struct{ text folded }

func (t prefixIgnoreCase) passes(f *field) bool {
	if f.kind != kindString {
		return false
	}
	_, ok := t.text.cutPrefix(f.text)
	return ok
}

// prefix reads a string, or {"equals-ignore-case": string}.
func (p *parser) prefix() (test, error) {
	text, fold, err := p.affix()
	if fold {
		return prefixIgnoreCase{foldText(text)}, err
	}
	return prefix{text}, err
}

// affix reads the operand of prefix and suffix.
func (p *parser) affix() (text string, ignoringCase bool, err error) {
	k, err := p.peek()
	if err != nil {
		return "", false, err
	}
	if k != kindObject {
		if k != kindString {
			return "", false, p.fail("%s where a string or {\"equals-ignore-case\":…} belongs", k)
		}
		text, err = p.text()
		return text, false, err
	}
	name, err := p.open("equals-ignore-case")
	if err != nil {
		return "", false, err
	}
	if name != "equals-ignore-case" {
		return "", false, p.unknown("form", name, []string{"equals-ignore-case"})
	}
	if text, err = p.stringOperand(); err != nil {
		return "", false, err
	}
	return text, true, p.close(name)
}
