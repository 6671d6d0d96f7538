package claims

import (
	"fmt"
	"strings"
)

// Words is the claim's rule in sentences, one for each part.
func (c Claim) Words() []string {
	var out []string
	for _, k := range c.Rule {
		out = append(out, k.words())
	}
	return out
}

func (k Check) words() string {
	switch {
	case k.Unmeasured != "":
		return "none: " + k.Unmeasured
	case k.Show != "":
		q, _ := parseShown(k.Show) // validated
		text := fmt.Sprintf("%s in every repeat of %s", q.text, k.Of.words())
		if strings.HasPrefix(k.Show, "property ") {
			text = fmt.Sprintf("%s, measured in every recipe of %s that guarantees it", q.text, k.Of.words())
		}
		if len(k.Control.In) > 0 {
			text += ", and in none of " + k.Control.words()
		}
		return text
	case k.Under != "":
		return fmt.Sprintf("median %s of %s less than %s of %s", k.Compare, k.Of.words(), k.Under, k.To.words())
	}
	return fmt.Sprintf("median %s of %s at least %s of %s", k.Compare, k.Of.words(), k.Least, k.To.words())
}

func (s Set) words() string {
	text := strings.Join(s.In, ", ")
	if len(s.In) > 3 {
		text = fmt.Sprintf("%d groups from %s", len(s.In), s.In[0])
	}
	if len(s.Recipes) > 0 {
		text = strings.Join(s.Recipes, ", ") + " (" + text + ")"
	}
	if s.Clients > 0 {
		text += fmt.Sprintf(" with %d clients", s.Clients)
	}
	return text
}
