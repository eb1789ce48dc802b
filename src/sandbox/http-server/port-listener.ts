// port-listener.ts: opens the port, or says why that failed.

import type { Server } from 'node:http'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'

/** Resolves with the port; rejects with GatewayError ADDRESS_IN_USE or ADDRESS_UNAVAILABLE. */
export function listening(server: Server, { host, port }: { host: string; port: number }): Promise<number> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error) => reject(faultOf(error, host, port))
    server.once('error', onError)
    server.listen({ host, port }, () => {
      server.removeListener('error', onError)
      // A listening server emits errors only for failed accepts (no file descriptors left). The client tries
      // again.
      server.on('error', () => undefined)
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : port)
    })
  })
}

function faultOf(error: Error, host: string, port: number): GatewayError {
  const inUse = codeOf(error) === 'EADDRINUSE'
  return new GatewayError(inUse ? 'ADDRESS_IN_USE' : 'ADDRESS_UNAVAILABLE', {
    what: `The sandbox cannot listen on ${host}:${port}.`,
    why: inUse ? 'Another process listens there, perhaps another sandbox.' : messageOf(error),
    act: inUse
      ? `See which one with \`ss -ltnp 'sport = :${port}'\`, or choose another port.`
      : 'Choose an address of this machine and a port above 1023.',
    cause: error,
  })
}
