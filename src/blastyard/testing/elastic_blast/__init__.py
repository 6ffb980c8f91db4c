"""A stand-in for ``elastic-blast``: does on an API server what the real command does there.

``python -m blastyard.testing.elastic_blast submit --cfg FILE --json --idempotency-key KEY`` reads
the configuration file and the kubeconfig it is given, writes the ConfigMap ``elb-scripts``, makes
the Jobs of the search in the namespace of the kube-context, rewrites ``~/.kube/config``, and
answers on the last line. Its Jobs have no pods: whoever tests ends them (:mod:`.cluster`).

What goes wrong, and where, stands in a plan (:mod:`.plan`), which it finds in the environment
variable ``ELB_STAND_IN_PLAN`` or in the key ``plan`` of the section ``[stand-in]`` of the
configuration file. Without a plan everything goes well. Nothing of the product's own engine is
imported here, so that it is judged from outside.
"""
