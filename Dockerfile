# syntax=docker/dockerfile:1
# The image of Clade: the program, certificates of public authorities, and nothing to run a shell with.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --sbom=true --provenance=true -t clade .
#
# `--sbom=true` lists every crate of Cargo.lock, which is copied into the image for that.

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    packaging/image release /image

FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="Clade" \
      org.opencontainers.image.description="GitOps node classifier for Puppet and OpenVox" \
      org.opencontainers.image.source="https://github.com/clade-classifier/clade" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /image /
# Any other user works too, in the group 0 (as in OpenShift) or with a volume at /var/lib/clade.
USER 65532:0
ENV CLADE_DATA_DIR=/var/lib/clade
EXPOSE 4433
VOLUME /var/lib/clade
ENTRYPOINT ["/usr/bin/clade"]
CMD ["serve"]
