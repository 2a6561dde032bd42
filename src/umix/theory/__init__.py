"""The analysis of the UMIX paper (section 5, appendix A) as code: generalised linear models in float64, without torch.

The derivation behind every function, and where it departs from the printed proofs, is in docs/explanation/theory.md.
"""
