// node-http.ts: what this project uses of node:http. An `import` of node:http reads every export of it, and
// one of them loads Node's own copy of undici: 130 ms of processor time at each start, and 2.4 MB of heap in
// each thread. getBuiltinModule() reads none. The linter refuses the import.

const http = process.getBuiltinModule('node:http')

export const { Agent, createServer, request, STATUS_CODES, validateHeaderName } = http
