# ibb as an image, see docs/containers.md. BASE is Debian 12 or 13, from whatever registry.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS built
ARG PIP_INDEX_URL
RUN apt-get update -q \
 && apt-get install -y -q --no-install-recommends gcc libc6-dev python3-dev python3-venv \
 && python3 -m venv /opt/ibb
COPY containers/ibb/*.lock /source/
# What builds packages is of the lock files as well: a build in isolation would take the newest release, unseen.
RUN /opt/ibb/bin/pip install -q --no-cache-dir --require-hashes --no-deps -r /source/build.lock \
 && /opt/ibb/bin/pip install -q --no-cache-dir --no-build-isolation --use-pep517 --require-hashes --no-deps \
    -r /source/requirements.lock
COPY . /source
# With a compiler there, this builds the kernels.
RUN /opt/ibb/bin/pip install -q --no-cache-dir --no-build-isolation --use-pep517 --no-deps /source \
 && /opt/ibb/bin/ibb --version | grep -q compiled \
 && /opt/ibb/bin/pip uninstall -q -y cython setuptools pip \
 && install -m 0755 /source/containers/ibb/make_secrets.py /opt/ibb/bin/make-secrets \
 && install -m 0755 /source/containers/ibb/start /opt/ibb/bin/start-after-secrets \
 && install -m 0755 /source/containers/ibb/check_health.py /opt/ibb/bin/check-health

FROM ${BASE}
# The number of the user is in the volume: an image of another time must have the same, and Kubernetes
# (runAsNonRoot) wants to see that it is none of root's.
RUN apt-get update -q \
 && apt-get install -y -q --no-install-recommends ca-certificates python3 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
 && groupadd --gid 3307 ibb \
 && useradd --uid 3307 --gid ibb --home-dir /var/lib/ibb --no-create-home --shell /usr/sbin/nologin ibb \
 && install -d -o ibb -g ibb -m 0750 /var/lib/ibb
COPY --from=built /opt/ibb /opt/ibb
# What one thread frees another takes only within an arena of the C library: of few, memory stays less.
ENV PATH=/opt/ibb/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin MALLOC_ARENA_MAX=2
USER 3307:3307
WORKDIR /var/lib/ibb
VOLUME /var/lib/ibb
EXPOSE 3307 8307
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["check-health"]
ENTRYPOINT ["ibb"]
CMD ["serve", "binlogs", "--listen", "0.0.0.0:3307", "--admin-listen", "0.0.0.0:8307", "--accounts", "accounts.toml", "--ssl-state", "tls", \
     "--require-tls"]
