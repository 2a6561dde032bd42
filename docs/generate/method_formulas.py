"""The formula of each method in TeX, and where its paper can be read."""

#: What the letters mean; others are explained in the text of the method.
SYMBOLS = (
    r"<small>$\ell$: cross-entropy of an example; $z$: its logits; $n$: number of examples, $n_g$ those of a group or class; "
    r"$L$: mean loss of a group or environment; $h$: features of a net, $\varphi$ its last layer.</small>"
)

_ARXIV = "https://arxiv.org/abs/"

PAPERS = {
    "afr": f"{_ARXIV}2306.11074",
    "balanced_softmax": f"{_ARXIV}2007.10740",
    "bam": f"{_ARXIV}2309.06717",
    "cb_last_layer": f"{_ARXIV}2309.08534",
    "chi2_doro": "https://proceedings.mlr.press/v139/zhai21a.html",
    "chi2_dro": f"{_ARXIV}2010.05893",
    "cnc": f"{_ARXIV}2203.01517",
    "coral": f"{_ARXIV}1607.01719",
    "crt": f"{_ARXIV}1910.09217",
    "cvar_doro": "https://proceedings.mlr.press/v139/zhai21a.html",
    "cvar_dro": f"{_ARXIV}2010.05893",
    "dfr": f"{_ARXIV}2204.02937",
    "domainmix": f"{_ARXIV}1912.01805",
    "dpe": f"{_ARXIV}2505.23027",
    "eiil": f"{_ARXIV}2010.07249",
    "erm": "https://proceedings.neurips.cc/paper/1991/hash/ff4d5fbbafdf976cfdc032e3bde78de5-Abstract.html",
    "evals": f"{_ARXIV}2410.05345",
    "fish": f"{_ARXIV}2104.09937",
    "focal": f"{_ARXIV}1708.02002",
    "george": f"{_ARXIV}2011.12945",
    "group_dro": f"{_ARXIV}1911.08731",
    "group_mixup": f"{_ARXIV}2209.08928",
    "ib_irm": f"{_ARXIV}2106.06607",
    "ingroup_mixup": f"{_ARXIV}1710.09412",
    "irm": f"{_ARXIV}1907.02893",
    "jtt": f"{_ARXIV}2107.09044",
    "lc": f"{_ARXIV}2212.01433",
    "ldam": f"{_ARXIV}1906.07413",
    "lff": f"{_ARXIV}2007.02561",
    "lisa": f"{_ARXIV}2201.00299",
    "lisa_umix": f"{_ARXIV}2209.08928",
    "logit_adjustment": f"{_ARXIV}2007.07314",
    "mixup": f"{_ARXIV}1710.09412",
    "mmd": "https://openaccess.thecvf.com/content_cvpr_2018/papers/Li_Domain_Generalization_With_CVPR_2018_paper.pdf",
    "pde": f"{_ARXIV}2306.04949",
    "pg_dro": f"{_ARXIV}2303.05809",
    "resample": f"{_ARXIV}2110.14503",
    "reweight": f"{_ARXIV}2110.14503",
    "self": f"{_ARXIV}2309.08534",
    "spare": f"{_ARXIV}2305.18761",
    "ssa": f"{_ARXIV}2204.02070",
    "subg": f"{_ARXIV}2110.14503",
    "suby": f"{_ARXIV}2110.14503",
    "ula": f"{_ARXIV}2310.18555",
    "umix": f"{_ARXIV}2209.08928",
    "vrex": f"{_ARXIV}2003.00688",
    "xrm": f"{_ARXIV}2309.16748",
}

_MIXTURE = r"\tilde x_{ij} = \lambda x_i + (1-\lambda) x_j, \qquad \lambda \sim \text{Beta}(\alpha, \alpha)"
_MIXED = r"\lambda\,\ell(\tilde x_{ij}, y_i) + (1-\lambda)\,\ell(\tilde x_{ij}, y_j)"
_WEIGHTED = r"\lambda\,w_i\,\ell(\tilde x_{ij}, y_i) + (1-\lambda)\,w_j\,\ell(\tilde x_{ij}, y_j)"
_GROUP_DRO = (
    r"\min_\theta \sum_g q_g L_g, \qquad q_g \leftarrow \frac{q_g \exp(\text{step_size} \cdot L_g)}"
    r"{\sum_h q_h \exp(\text{step_size} \cdot L_h)}"
)
_CVAR = (
    r"\min_\theta\; \max_{q \in Q} \sum_i q_i\,\ell_i, \qquad"
    r" Q = \bigl\{q : \sum_i q_i = 1,\; 0 \le q_i \le \tfrac{1}{\alpha n}\bigr\}"
)
_CHI2 = (
    r"\min_\theta\; \max_{q \in Q} \sum_i q_i\,\ell_i, \qquad"
    r" Q = \bigl\{q : \tfrac{1}{2n} \sum_i (n q_i - 1)^2 \le \rho\bigr\}, \quad \rho = \tfrac12 \bigl(\tfrac1\alpha - 1\bigr)^2"
)
_UNCERTAINTY = (
    r"u_i = \frac1{\text{length}} \sum_{t=\text{start}}^{\text{start}+\text{length}-1} 1[\hat y_i^{(t)} \ne y_i],"
    r" \qquad w_i = \eta\,u_i + c"
)
_LAST_LAYER = r"\min_\varphi \sum_{i \in B} \ell(\varphi^\top h(x_i), y_i), \qquad "
_SUBSET = r"\min_\theta \sum_{i \in B} \ell(x_i, y_i), \qquad B: "
_SIZES = r"w_i \propto n_{g(i)}^{-\text{power}}"

#: Lines of display formulas.
FORMULAS: dict[str, tuple[str, ...]] = {
    "afr": (
        r"\min_\varphi \sum_i \mu_i\,\ell_i(\varphi) + \text{lam}\,\lVert\varphi - \varphi_{\text{ERM}}\rVert^2,"
        r" \qquad \mu_i \propto \frac{\exp(-\gamma\,p_i)}{n_{y_i}}",
    ),
    "balanced_softmax": (r"\min_\theta\; \frac1n \sum_i \ell(z_i + \log n, y_i), \qquad n = (n_1, \dots, n_C)",),
    "bam": (
        r"\min_{\theta, b}\; \frac1n \sum_i \ell(z_i + \text{strength}\cdot b_i, y_i), \qquad"
        r" E = \{i : \arg\max z_i \ne y_i\}",
        r"\min_\theta \sum_{i \notin E} \ell_i + \text{upweight} \sum_{i \in E} \ell_i",
    ),
    "cb_last_layer": (_LAST_LAYER + r"B \text{ held-out rows, every class as often}",),
    "chi2_doro": (_CHI2, r"\text{over the share } 1-\varepsilon \text{ of examples with the smallest losses}"),
    "chi2_dro": (_CHI2,),
    "cnc": (r"\min_\theta\; \text{weight}\cdot L_{\text{contrastive}} + (1-\text{weight})\,\frac1n \sum_i \ell_i",),
    "coral": (
        r"\min_\theta\; \frac1n\sum_i \ell_i + \gamma\,\underset{d<e}{\text{mean}}"
        r" \Bigl[\tfrac1k\lVert\mu_d - \mu_e\rVert^2 + \tfrac1{k^2}\lVert C_d - C_e\rVert_F^2\Bigr]",
    ),
    "crt": (_LAST_LAYER + r"B \text{ training rows, every class or group as often}",),
    "cvar_doro": (_CVAR, r"\text{over the share } 1-\varepsilon \text{ of examples with the smallest losses}"),
    "cvar_dro": (_CVAR,),
    "dfr": (_LAST_LAYER + r"B \text{ held-out rows, every group as often}",),
    "domainmix": (_MIXED, _MIXTURE + r", \quad i, j \text{ of different domains}"),
    "dpe": (
        r"\hat p(y \mid x) = \frac1M \sum_m \text{softmax}\bigl(-|s_m|\,\bigl\lVert \tfrac{h}{\lVert h\rVert} -"
        r" \tfrac{p_{m,y}}{\lVert p_{m,y}\rVert}\bigr\rVert\bigr)",
    ),
    "eiil": (
        r"\max_q\; \sum_e \bigl\lVert\nabla_s \textstyle\sum_i q_i(e)\,\ell(s z_i, y_i)\bigr\rVert^2_{s=1}",
        _GROUP_DRO,
    ),
    "erm": (r"\min_\theta\; \frac1n \sum_i \ell(x_i, y_i)",),
    "evals": (_LAST_LAYER + r"B \text{ the } k \text{ highest and } k \text{ lowest losses of each class}",),
    "fish": (
        r"\theta \leftarrow \theta + \text{meta_lr}\,(\tilde\theta - \theta),"
        r" \qquad \tilde\theta \text{ after a step on each domain}",
    ),
    "focal": (r"\min_\theta\; -\frac1n \sum_i \alpha_{y_i} (1-p_i)^\gamma \log p_i, \qquad p_i = P(y_i \mid x_i)",),
    "george": (_GROUP_DRO + r", \qquad g = \text{cluster of a class}",),
    "group_dro": (_GROUP_DRO, r"L_g = \frac1{n_g} \sum_{i \in g} \ell_i"),
    "group_mixup": (_WEIGHTED, _MIXTURE, _SIZES),
    "ib_irm": (
        r"\min_\theta\; \underset{e}{\text{mean}}\, L_e + w\,\underset{e}{\text{mean}}"
        r" \bigl\lVert\nabla_s L_e(s z)\bigr\rVert^2_{s=1} + \beta\,\underset{e}{\text{mean}}\,\text{Var}_e(\varphi)",
    ),
    "ingroup_mixup": (_MIXED, _MIXTURE + r", \quad i, j \text{ of the same label and group}"),
    "irm": (
        r"\min_\theta\; \underset{e}{\text{mean}}\, L_e + w\,\underset{e}{\text{mean}}"
        r" \bigl\lVert\nabla_s L_e(s z)\bigr\rVert^2_{s=1}",
    ),
    "jtt": (r"\min_\theta \sum_i \bigl(1 + \text{upweight} \cdot 1[\hat y_i^{\text{ERM}} \ne y_i]\bigr)\,\ell_i",),
    "lc": (
        r"\min_\theta\; \frac1n \sum_i \ell\bigl(f(\tilde x_i) + \log P(\cdot \mid a_i)^\eta, y_i\bigr), \qquad"
        r" \tilde x_i = \lambda x_i + (1-\lambda) x_j, \quad y_j = y_i \ne a_j",
    ),
    "ldam": (
        r"\min_\theta\; \frac1{n s} \sum_i \ell\bigl(s\,(z_i - \Delta_{y_i} e_{y_i}), y_i\bigr),"
        r" \qquad \Delta_y = \text{max_margin} \cdot \Bigl(\frac{n_{\min}}{n_y}\Bigr)^{1/4}",
    ),
    "lff": (
        r"\min_{\theta_b} \frac1n\sum_i \frac{1 - p_i^q}{q}, \qquad"
        r" \min_{\theta_d} \frac1n\sum_i W_i\,\ell_i^d, \qquad W_i = \frac{\ell_i^b}{\ell_i^b + \ell_i^d}",
    ),
    "lisa": (
        _MIXED,
        _MIXTURE,
        r"\text{with probability same_label: } y_i = y_j,\ a_i \ne a_j; \qquad \text{else: } y_i \ne y_j,\ a_i = a_j",
    ),
    "lisa_umix": (_WEIGHTED, _UNCERTAINTY, r"\text{pairs } (i, j) \text{ as in LISA}"),
    "logit_adjustment": (r"\min_\theta\; \frac1n \sum_i \ell(z_i + \tau \log \pi, y_i), \qquad \pi_y = \frac{n_y}{n}",),
    "mixup": (_MIXED, _MIXTURE),
    "mmd": (
        r"\min_\theta\; \frac1n\sum_i \ell_i + \gamma\,\underset{d<e}{\text{mean}}"
        r" \bigl[E\,k(x, x') + E\,k(z, z') - 2\,E\,k(x, z)\bigr], \qquad x \in d,\ z \in e",
    ),
    "pde": (r"\min_\theta \sum_{i \in S_t} \ell_i, \qquad S_0 \text{ every group as often},\quad S_t \subset S_{t+1}",),
    "pg_dro": (_GROUP_DRO, r"L_g = \frac{\sum_i p_{ig}\,\ell_i}{\sum_i p_{ig}}"),
    "resample": (r"P(i) \propto w_i, \qquad " + _SIZES,),
    "reweight": (r"\min_\theta\; \frac1n \sum_i w_i\,\ell_i, \qquad " + _SIZES,),
    "self": (
        r"\text{rows with the largest}\quad \frac1C\, \text{KL}\bigl(p^{\text{early}}(x_i) \,\Vert\, p^{\text{ERM}}(x_i)\bigr)",
    ),
    "spare": (r"P(i) \propto |\text{cluster}(i)|^{-\text{power}} \quad \text{within each class}",),
    "ssa": (_GROUP_DRO + r", \qquad g = \text{predicted group}",),
    "subg": (_SUBSET + r"\text{every group cut to } \min_g n_g \text{ rows}",),
    "suby": (_SUBSET + r"\text{every class cut to } \min_y n_y \text{ rows}",),
    "ula": (
        r"\min_\theta\; \frac1n \sum_i \ell\bigl(z_i + \eta \log P(\cdot \mid k_i), y_i\bigr),"
        r" \qquad k_i = \text{class that a biased net predicts}",
    ),
    "umix": (_UNCERTAINTY, _MIXTURE, r"\min_\theta \underset{(i, j)}{\text{mean}}\; " + _WEIGHTED),
    "vrex": (r"\min_\theta\; \underset{e}{\text{mean}}\, L_e + w\,\text{Var}_e(L_e)",),
    "xrm": (_GROUP_DRO + r", \qquad g = \text{class} \times \text{whether a twin is wrong}",),
}
