// websocket-config.ts: the config of a listener for WebSocket, `ingest.broker.listeners[].websocket`.

import { z } from 'zod'

/** Of a ws:// or wss:// URL without a path. Client libraries use it, too. */
export const defaultPath = '/mqtt'

export const webSocketSchema = z
  .strictObject({
    origins: z
      .array(
        z.string().transform((text, context) => {
          const origin = originOf(text)
          if (origin !== null) return origin
          context.addIssue({ code: 'custom', message: originText(text) })
          return z.NEVER
        }),
      )
      .default([])
      .meta({ examples: [['https://fleet.example.com']] })
      .describe(
        "Web pages whose scripts may connect, as the `Origin` that browsers send: `https://fleet.example.com`. `'*'` " +
          'allows all pages. Programs that are no browser may always connect where they send no `Origin`, so this ' +
          'protects users of browsers and is no access rule. An `Origin` of the host and port in `Host` needs no entry ' +
          'with wss://, and with ws:// where the host is an address, `localhost`, the name of this machine or in `hosts`: ' +
          'some libraries (paho for Python and C) always send one.',
      ),
    hosts: z
      .array(
        z
          .string()
          .regex(/^[^\s:/?#@[\]]+$/, 'must be a name without scheme, port and path')
          .toLowerCase(),
      )
      .default([])
      .meta({ examples: [['gateway.example.com']] })
      .describe(
        'Names by which clients reach a ws:// listener. A client that sends an `Origin` of this name may connect. Other ' +
          'names are refused then, because a page can let its own name resolve to this machine.',
      ),
  })
  .describe('For ws:// and wss:// only.')

/** As a browser writes it; null where the text is no origin. */
function originOf(text: string): string | null {
  if (text === '*') return text
  const match = /^([a-z][a-z\d+.-]*):\/\/[^\s/?#@]+$/i.exec(text)
  if (match === null || !URL.canParse(text)) return null
  // URL has no origin for schemes of its own, such as those of apps.
  const { origin } = new URL(text)
  return origin === 'null' ? text.toLowerCase() : origin
}

function originText(text: string): string {
  return `must be an origin such as https://fleet.example.com, without a path, or *, found "${text}"`
}
