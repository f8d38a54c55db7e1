# A broker in a container, without Java and Spark.
#
#   docker build -t ottla .
#   docker run -p 9092:9092 -v ottla:/var/lib/ottla ottla
#
# Settings come after the name of the image and win over the file:
#   docker run -p 9092:9092 ottla /etc/ottla/server.properties --set log.dirs=/var/lib/ottla --set num.partitions=3 ...

FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE NOTICE ./
COPY config ./config
COPY packaging ./packaging
COPY src ./src
# The compiled kernel is Spark's, and there is no Spark here.
ENV OTTLA_PURE_WHEEL=1
RUN python -m venv /opt/ottla \
 && /opt/ottla/bin/pip install --no-cache-dir . \
 && /opt/ottla/bin/pip uninstall --yes pip

FROM python:3.11-slim
COPY --from=build /opt/ottla /opt/ottla
RUN useradd --uid 10092 --user-group --no-create-home --home-dir /var/lib/ottla --shell /usr/sbin/nologin ottla \
 && install -d -o ottla -g ottla -m 750 /var/lib/ottla \
 && install -D -m 644 /opt/ottla/share/ottla/config/server.properties /etc/ottla/server.properties
ENV PATH=/opt/ottla/bin:$PATH
USER ottla
WORKDIR /var/lib/ottla
VOLUME /var/lib/ottla
EXPOSE 9092
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=10s --start-period=30s \
  CMD ["kafka-broker-api-versions", "--bootstrap-server", "127.0.0.1:9092"]
ENTRYPOINT ["ottla", "broker"]
# Inside a container every interface is the container's own; clients on the host come through the published port. Who
# publishes it to others than this machine gives it listeners with TLS and logins instead (docs/security-tls.md).
CMD ["/etc/ottla/server.properties", "--set", "log.dirs=/var/lib/ottla", "--set", "listeners=PLAINTEXT://0.0.0.0:9092", "--set", "ottla.allow.unauthenticated.listeners=true", "--set", "advertised.listeners=PLAINTEXT://localhost:9092"]
