// evaluated-messages.ts: maps the messages of sources with an expression, once it was evaluated (jsonata/).
// Until then such a message is kept whole, and the config may have changed: its source may not have its topic
// any more.

import type { Message } from '../../domain/message.ts'
import { quote } from '../../std/quote.ts'
import type { Route, Routing } from '../routing/routing.ts'
import type { Decoded, MapResult, RecordContext } from '../types.ts'
import { rejected, unmappable } from './map-result.ts'
import type { MessageRecords } from './message-records.ts'

type Deps = {
  context: RecordContext
  routing: Pick<Routing, 'routeOfSource'>
  records: Pick<MessageRecords, 'mapEvaluated'>
  decode(route: Route, message: Message): Decoded
  /** The result of the bytes of a message that were decoded. */
  mapBytes(route: Route, decoded: Decoded, message: Message): MapResult
}

/** The functions of the same names of the mapper, whose results are not marked yet. */
export function createDeferredMessages({ context, routing, records, decode, mapBytes }: Deps) {
  return { mapDecoded, decoded, refused }

  function mapDecoded(message: Message, name: string, value: unknown): MapResult {
    const route = routing.routeOfSource(name, message)
    return route === null ? foreign(message, name) : records.mapEvaluated(route, value, message)
  }

  function decoded(
    message: Message,
    name: string,
  ): { kind: 'value'; value: unknown } | { kind: 'ended'; result: MapResult } {
    const route = routing.routeOfSource(name, message)
    if (route === null) return { kind: 'ended', result: foreign(message, name) }
    const found = decode(route, message)
    if (found.kind === 'value' && found.badByteAt !== undefined) {
      const detail = `The message is not UTF-8 from byte ${found.badByteAt} on, and its expression may read that.`
      return { kind: 'ended', result: refused(message, name, 'NOT_UTF8', detail) }
    }
    if (found.kind === 'value') return found
    return { kind: 'ended', result: mapBytes(route, found, message) }
  }

  function refused(message: Message, name: string, reason: string, detail: string): MapResult {
    const route = routing.routeOfSource(name, message)
    if (route === null) return foreign(message, name)
    return unmappable(message, route.runtime.source, route.entry, reason, detail)
  }

  function foreign(message: Message, name: string): MapResult {
    context.refuse('NO_SOURCE', `The source ${quote(name, 64)} does not take this topic any more.`)
    return rejected(context.rejection, message, null, null)
  }
}
