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
	}
	least, _ := parseEffect(k.Least + k.Under) // validated
	relation, factor := "at least", fmt.Sprintf("%gx", least.value)
	if k.Under != "" {
		relation = "less than"
	}
	if least.difference {
		factor = fmt.Sprintf("%g above", least.value)
	}
	return fmt.Sprintf("median %s of %s %s %s that of %s", k.Compare, k.Of.words(), relation, factor, k.To.words())
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
