// alert-conditions.ts: the condition of alerts to receivers outside. Nothing is late or lost by it.

export const alertConditions = {
  ALERTS_FAILING: {
    severity: 'warning',
    meaning:
      'A receiver of alerts or a heartbeat cannot be reached. What it does not know yet is sent when it can be reached.',
    act: 'See the reason. Correct the receiver in the section `alerts`, then run `telemetry-gateway alerts test`.',
  },
} as const
