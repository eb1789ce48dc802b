// turns.ts: how much is read in one turn of the event loop. A connection that sends without a pause could
// otherwise have 2 MiB of its packets parsed before another connection is read.
//
//   each connection   `packetsPerTurn` PUBLISH and PINGREQ, which cost a few microseconds each
//                     `controlPerTurn` of the others, which aedes parses and which cost ten times as much
//   all connections   `controlOfAllPerTurn` of the others
//
// A connection at its bound reads on in the next turn. At the bound of all, connections take turns.

/** What one connection may read in this turn. */
export type TurnBudget = { turn: number; packets: number; control: number }

export type Turns = {
  /** Fills the budget of a connection at its first use in a turn. */
  refill(budget: TurnBudget): void
  /** Left for the control packets of all connections in this turn. */
  readonly controlLeft: number
  spendControl(cost: number): void
  /** Calls `nextTurn` in a later turn. */
  resumeLater(connection: { nextTurn(): void }): void
}

const packetsPerTurn = 256
const controlPerTurn = 64
const controlOfAllPerTurn = 256

export function createTurns(): Turns {
  let turn = 1
  let armed = false
  let controlLeft = controlOfAllPerTurn
  let waiting: { nextTurn(): void }[] = []

  function refill(budget: TurnBudget): void {
    arm()
    if (budget.turn === turn) return
    budget.turn = turn
    budget.packets = packetsPerTurn
    budget.control = controlPerTurn
  }

  function arm(): void {
    if (armed) return
    armed = true
    setImmediate(nextTurn)
  }

  function nextTurn(): void {
    armed = false
    turn += 1
    controlLeft = controlOfAllPerTurn
    const connections = waiting
    waiting = []
    let index = 0
    for (const connection of connections) {
      if (controlLeft <= 0) break
      index += 1
      connection.nextTurn()
    }
    if (index === connections.length) return
    // Those that could not read are first in the next turn.
    waiting = [...connections.slice(index), ...waiting]
    arm()
  }

  return {
    refill,
    get controlLeft() {
      return controlLeft
    },
    spendControl(cost) {
      controlLeft -= cost
    },
    resumeLater(connection) {
      waiting.push(connection)
      arm()
    },
  }
}
