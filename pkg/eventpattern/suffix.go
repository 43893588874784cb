package eventpattern

import "strings"

type suffix struct{ text string }

func (t suffix) passes(f *field) bool {
	return f.kind == kindString && strings.HasSuffix(f.text, t.text)
}

type suffixIgnoreCase struct{ text folded }

func (t suffixIgnoreCase) passes(f *field) bool {
	return f.kind == kindString && t.text.isSuffix(f.text)
}

// suffix reads a string, or {"equals-ignore-case": string}.
func (p *parser) suffix() (test, error) {
	text, fold, err := p.affix()
	if fold {
		return suffixIgnoreCase{foldText(text)}, err
	}
	return suffix{text}, err
}
