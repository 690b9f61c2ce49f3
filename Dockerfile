# Two stages: what builds is not what runs. Redis is not in here: see compose.yaml.
FROM python:3.12-slim AS build
WORKDIR /src
COPY requirements/all.txt requirements/all.txt
RUN python -m venv /opt/memagent \
    && /opt/memagent/bin/pip install --no-cache-dir --require-hashes -r requirements/all.txt
COPY pyproject.toml README.md ./
COPY memagent memagent
COPY examples examples
RUN /opt/memagent/bin/pip install --no-cache-dir --no-deps .

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 memagent \
    && install -d -o memagent -g memagent /var/lib/memagent
COPY --from=build /opt/memagent /opt/memagent
ENV PATH=/opt/memagent/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MEMAGENT_DATA_DIR=/var/lib/memagent
USER memagent
WORKDIR /var/lib/memagent
EXPOSE 8900
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8900/health', timeout=2)"]
ENTRYPOINT ["memagent"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8900"]
