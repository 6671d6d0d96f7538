package measure
