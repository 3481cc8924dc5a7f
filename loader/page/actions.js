// Each button triggers a run by the API of Airflow, with the rights of the person, and opens the run.
function send(method, address, body) {
  return fetch(address, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

// A run of a paused DAG waits. Airflow's own form unpauses the DAG, too.
async function unpause(address, dag) {
  const found = await fetch(address).then((answer) => answer.json());
  if (found.is_paused && window.confirm(`${dag} is paused, so the run waits. Unpause it?`)) {
    await send("PATCH", address, { is_paused: false });
  }
}

async function trigger(button, conf) {
  const { runs, dag } = button.dataset;
  const answer = await send("POST", runs, { logical_date: null, conf });
  const found = await answer.json().catch(() => ({}));
  if (answer.ok) {
    await unpause(runs.replace(/\/dagRuns$/, ""), dag.split("/").pop());
    window.location.assign(`${dag}/runs/${encodeURIComponent(found.dag_run_id)}`);
    return;
  }
  const why = answer.status === 403 ? "you may not trigger this DAG" : JSON.stringify(found.detail ?? answer.status);
  const refusal = document.createElement("span");
  refusal.className = "bad";
  refusal.setAttribute("role", "alert");
  refusal.textContent = ` refused: ${why}`;
  button.after(refusal);
  button.disabled = false;
}

for (const button of document.querySelectorAll("button[data-runs]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const conf = JSON.parse(button.dataset.conf);
    const { ask } = button.dataset;
    if (ask) {
      conf[ask] = window.prompt(`${button.textContent}: ${ask}?`);
      if (!conf[ask]) return;
    } else if (!window.confirm(`${button.textContent}?`)) return;
    button.disabled = true;
    trigger(button, conf);
  });
}
