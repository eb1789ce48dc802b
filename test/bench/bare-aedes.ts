// bare-aedes.ts: the yardstick: aedes with default options and an authorizePublish that lets everything pass.
//
//   node test/bench/bare-aedes.ts     prints {"port":N}; ends with its standard input
//
// As its README does it, the server leaves Nagle's algorithm on.

import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { Aedes } from 'aedes'
import { endWithParent, writeLine } from './script.ts'

endWithParent()
const broker = await Aedes.createBroker({ authorizePublish: (_client, _packet, done) => done(null) })
const server = createServer(broker.handle)
server.listen({ port: 0, host: '127.0.0.1', backlog: 2048 }, () => {
  writeLine({ port: (server.address() as AddressInfo).port })
})
