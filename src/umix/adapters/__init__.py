"""umix inside the tools that people train with already: what each of them calls a model, a trainer or a loop."""
