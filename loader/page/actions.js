// Each button triggers a run by the API of Airflow, with the rights of the person, and opens the run.
for (const button of document.querySelectorAll("button[data-runs]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const conf = JSON.parse(button.dataset.conf);
    const { ask } = button.dataset;
    if (ask) {
      conf[ask] = window.prompt(`${button.textContent}: ${ask}?`);
      if (!conf[ask]) return;
    } else if (!window.confirm(`${button.textContent}?`)) return;
    button.disabled = true;
    const answer = await fetch(button.dataset.runs, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ logical_date: null, conf }),
    });
    const found = await answer.json().catch(() => ({}));
    if (answer.ok) {
      window.location.assign(`${button.dataset.dag}/runs/${encodeURIComponent(found.dag_run_id)}`);
      return;
    }
    const why = answer.status === 403 ? "you may not trigger this DAG" : JSON.stringify(found.detail ?? answer.status);
    const refusal = document.createElement("span");
    refusal.className = "bad";
    refusal.setAttribute("role", "alert");
    refusal.textContent = ` refused: ${why}`;
    button.after(refusal);
    button.disabled = false;
  });
}
