package eventpattern

// anyValue is {"exists": true}: a scalar at exactly this path.
type anyValue struct{}

func (anyValue) passes(*field) bool { return true }

// exists reads the operand of exists. {"exists": false} is a property of the
// condition, since there is no value it could test.
func (p *parser) exists(c *condition) error {
	k, err := p.peek()
	if err != nil {
		return err
	}
	if k != kindTrue && k != kindFalse {
		return p.fail("%s where true or false belongs", k)
	}
	if _, err := p.scalar(k); err != nil {
		return err
	}
	if k == kindTrue {
		c.tests = append(c.tests, anyValue{})
	} else {
		c.absent = true
	}
	return nil
}
