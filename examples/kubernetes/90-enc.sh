#!/bin/sh
# For /container-custom-entrypoint.d/ of the images of Puppet Server and OpenVox Server: has nodes
# classified by Clade. CLADE_SERVER is its address. The program is in the image that the Dockerfile beside this file
# makes; the certificates are those that the server has.
set -e
puppet config set node_terminus exec --section server
puppet config set external_nodes "/opt/clade/clade enc --server ${CLADE_SERVER:-https://clade.puppet.svc:4433}" --section server
