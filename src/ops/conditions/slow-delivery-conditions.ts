// slow-delivery-conditions.ts: the conditions of a delivery that works, and not well.

export const slowDeliveryConditions = {
  SERVICE_SLOW: {
    severity: 'warning',
    delays: true,
    meaning:
      'The service answers, and takes long for it: half of delivery.timeout, or 10 s. A slow line looks the same.',
    act:
      'Check the line, then ask the support of the service. While payloads wait, raise delivery.max_in_flight or delivery.batch.max_payloads, ' +
      'so that more is sent meanwhile.',
  },
  REQUESTS_FAILING: {
    severity: 'warning',
    delays: true,
    meaning: 'Three tenths of the requests to the service fail, or more, and others succeed.',
    act:
      'Nothing is lost: each batch is sent again. If this continues, check the network, and give the requestIds of ' +
      '`batches list` to the support of the service.',
  },
  PAYLOADS_FAILING: {
    severity: 'warning',
    meaning: 'The service accepts some payloads, and lists a quarter or more as failed.',
    act:
      'Run `ledger --outcome retried` and `dead-letters list` to see which devices and why. Correct the mapping, ' +
      'the device table, or the registration of the assets.',
  },
  BACKLOG_GROWS: {
    severity: 'warning',
    delays: true,
    meaning:
      'More payloads come in than are delivered. Payloads wait for two minutes or more, those of backfill for 15.',
    act:
      'See whether the service answers slowly (SERVICE_SLOW, gateway_submission_duration_seconds) and how fast the ' +
      'line is. Raise delivery.max_in_flight or delivery.batch.max_payloads, and raise or remove delivery.limits.',
  },
} as const
