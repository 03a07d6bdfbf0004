# syntax=docker/dockerfile:1

# The build runs on the builder's own platform and cross-compiles: no emulation.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /source
COPY go.mod go.sum ./
RUN go mod download
COPY main.go ./
COPY api api
COPY config/crd config/crd
COPY controllers controllers
COPY internal internal
ARG TARGETOS TARGETARCH
ARG VERSION=unknown REVISION=unknown
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w \
      -X github.com/messaginginbox/operator/internal/version.version=$VERSION \
      -X github.com/messaginginbox/operator/internal/version.revision=$REVISION" \
    -o /inbox .

# Certificates, time zones and a non-root user, and no shell.
FROM gcr.io/distroless/static:nonroot
ARG VERSION=unknown REVISION=unknown
LABEL org.opencontainers.image.title="messaging-inbox-operator" \
      org.opencontainers.image.description="Keeps the table, the retention and the pruning of a consumer inbox safe" \
      org.opencontainers.image.source="https://github.com/messaginginbox/operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /inbox /inbox
USER 65532:65532
ENTRYPOINT ["/inbox"]
