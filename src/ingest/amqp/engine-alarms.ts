// engine-alarms.ts: an alarm of RabbitMQ (memory or disk): it reads nothing more of any client that
// publishes, so devices get no acknowledgement. It says so to a connection of AMQP that publishes, and to no
// other one. member-name.ts publishes an empty message every `probeEveryMs`; the connections that publish
// anyway hear it, too. One condition for all of them.

import type { State } from '../../domain/condition-state.ts'

export class EngineAlarms {
  /** By connection, what RabbitMQ says. */
  readonly #blocked = new Map<string, string>()

  /** Null: it is over, or the connection is. */
  set(connection: string, reason: string | null): void {
    if (reason === null) this.#blocked.delete(connection)
    else this.#blocked.set(connection, reason)
  }

  *states(messageSource: string): Generator<State> {
    const [reason] = this.#blocked.values()
    if (reason !== undefined) yield { code: 'ENGINE_BLOCKED', messageSource, reason }
  }
}
