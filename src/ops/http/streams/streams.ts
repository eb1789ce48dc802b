// streams.ts: the path that answers as long as the client reads: /tap, messages as they come, raw and mapped
// (tap-stream.ts). Entry file of this folder.

import { deviceKeyOf } from '../device-list.ts'
import { z } from 'zod'
import { wantsEvents } from '../accepted-type.ts'
import { text } from '../http-routing/parameters.ts'
import { route, type Route } from '../http-routing/route.ts'
import { eventStreamType, tapContentType } from './tap-stream.ts'

export const streamRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/tap',
    summary: 'Streams messages as they come, raw and mapped, one JSON line each.',
    right: 'read',
    atOnce: true,
    parameters: z.strictObject({
      device: text('Only of this device.'),
      topic: text('Only of topics that match this filter.'),
      source: text('Only of this source.'),
    }),
    answers: {
      200: {
        means: 'Lines until the client closes the connection; with `Accept: text/event-stream`, events.',
        contentType: tapContentType,
        otherType: eventStreamType,
      },
    },
    answer({ source, values, request, response, access }) {
      const asEvents = wantsEvents(request.headers.accept)
      const contentType = asEvents ? eventStreamType : tapContentType
      if (request.method === 'HEAD') return { status: 200, contentType, body: '' }
      const { device = null, topic = null, source: name = null } = values
      const key = device === null ? null : deviceKeyOf(source.stages, device)
      return source.tap({ device: key, topic, source: name, asEvents }, response, access) ?? 'streams'
    },
  }),
]
