#!/bin/sh
# For /container-custom-entrypoint.d/ of the images of Puppet Server and OpenVox Server: has nodes
# classified by Clade. CLADE_SERVER is its address. `clade` and the certificates of the server are there: the binary
# from the image of Clade, by an init container; the certificates since the server has them.
set -e
puppet config set node_terminus exec --section server
puppet config set external_nodes "/opt/clade/clade enc --server ${CLADE_SERVER:-https://clade.puppet.svc:4433}" --section server
