# Builds the page and the server, then keeps only what runs.
ARG NODE=22-bookworm

FROM node:${NODE} AS build
WORKDIR /app
COPY . .
RUN node scripts/build.mjs \
	&& npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:${NODE}-slim
WORKDIR /app
COPY --from=build /app/package.json /app/LICENSE ./
COPY --from=build /app/workspace-template ./workspace-template
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
RUN mkdir /data && chown node:node /data && chmod 0700 /data
USER node
ENV NODE_ENV=production OPENLANI_HOME=/data OPENLANI_HOST=0.0.0.0 OPENLANI_PORT=7717
VOLUME /data
EXPOSE 7717
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
	CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.OPENLANI_PORT + '/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "dist/server/main.js"]
CMD ["serve"]
